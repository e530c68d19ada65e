"""Which request for a checkpoint runs next, which waits, and which falls out of the queue."""

from hypothesis import given
from hypothesis import strategies as st

from weir.core.ids import RequestId
from weir.core.request_decider import (
    Origin,
    PutOff,
    Request,
    Start,
    Traffic,
    Wait,
    choose,
    enqueue,
)
from weir.core.snapshots import CheckpointKind

CHECKPOINT, SAVEPOINT = CheckpointKind.CHECKPOINT, CheckpointKind.SAVEPOINT
LIMIT = 1000


def periodic(number):
    return Request(number, Origin.CLOCK, CHECKPOINT, RequestId(""))


def asked(number, kind=CHECKPOINT, *, forced=False):
    return Request(number, Origin.USER, kind, RequestId(f"r{number}"), forced)


def a_queue(*requests, limit=LIMIT):
    queue = ()
    for request in requests:
        queue = enqueue(queue, request, limit).queue
    return queue


def quiet(**differently):
    return Traffic(
        **{
            "now": 0,
            "in_flight": 0,
            "cleaning": 0,
            "max_concurrent": 1,
            "pause_over_at": 0,
            **differently,
        }
    )


# The order of the queue


def test_a_savepoint_goes_before_a_forced_checkpoint():
    """C5: savepoints first, however late they come."""
    assert a_queue(asked(1, forced=True), asked(2, SAVEPOINT)) == (
        asked(2, SAVEPOINT),
        asked(1, forced=True),
    )


def test_a_forced_savepoint_goes_before_one_that_is_not():
    """C5: then forced."""
    assert a_queue(asked(1, SAVEPOINT), asked(2, SAVEPOINT, forced=True)) == (
        asked(2, SAVEPOINT, forced=True),
        asked(1, SAVEPOINT),
    )


def test_a_checkpoint_that_somebody_asked_for_goes_before_a_periodic_one():
    """C5: then non-periodic."""
    assert a_queue(periodic(1), asked(2)) == (asked(2), periodic(1))


def test_of_equal_requests_the_older_goes_first():
    """C5: then age."""
    assert a_queue(asked(2), asked(1)) == (asked(1), asked(2))


# A full queue


def test_a_full_queue_without_a_periodic_request_refuses_every_request():
    """C5: even a savepoint, because a user waits for each queued one."""
    queue = a_queue(asked(1), asked(2))
    late = asked(3, SAVEPOINT)

    assert enqueue(queue, late, 2).queue == queue
    assert enqueue(queue, late, 2).dropped == (late,)


def test_a_full_queue_gives_way_at_the_cost_of_its_lowest_when_that_is_periodic():
    """C5: the clock will ask again."""
    queue = a_queue(asked(1), periodic(2))
    late = asked(3)

    assert enqueue(queue, late, 2).queue == (asked(1), late)
    assert enqueue(queue, late, 2).dropped == (periodic(2),)


def test_a_queue_that_is_not_full_drops_no_request():
    """C5: at most so many, and not one fewer."""
    queue = a_queue(*(asked(n) for n in range(LIMIT - 1)))

    assert enqueue(queue, asked(LIMIT), LIMIT).dropped == ()
    assert len(enqueue(queue, asked(LIMIT), LIMIT).queue) == LIMIT


# What may start


def test_the_first_in_the_queue_starts_when_nothing_is_in_flight():
    """C5: the queue's order is the order of starting."""
    assert choose(a_queue(periodic(1), asked(2)), quiet()) == Start(asked(2))


def test_nothing_starts_from_an_empty_queue():
    """C5: there is no checkpoint without a request."""
    assert choose((), quiet()) == Wait()


def test_a_request_waits_while_as_many_as_allowed_are_in_flight():
    """C6: max concurrent checkpoints."""
    assert choose((asked(1),), quiet(in_flight=2, max_concurrent=2)) == Wait()
    assert choose((asked(1),), quiet(in_flight=1, max_concurrent=2)) == Start(asked(1))


def test_a_forced_request_does_not_wait_for_those_in_flight():
    """C5: a savepoint must not be starved by a checkpoint that hangs."""
    forced = asked(1, SAVEPOINT, forced=True)

    assert choose((forced,), quiet(in_flight=3)) == Start(forced)


def test_a_periodic_request_before_the_end_of_the_pause_is_put_off_until_then():
    """C5: MINIMUM_TIME_BETWEEN_CHECKPOINTS, and the clock learns when to come back."""
    early = quiet(now=59, pause_over_at=60)

    assert choose((periodic(1),), early) == PutOff(periodic(1), 60)
    assert choose((periodic(1),), quiet(now=60, pause_over_at=60)) == Start(periodic(1))


def test_the_pause_does_not_hold_a_request_that_somebody_made():
    """C5: only periodic requests are put off."""
    assert choose((asked(1),), quiet(now=59, pause_over_at=60)) == Start(asked(1))


def test_a_forced_periodic_request_is_not_put_off():
    """C5: a periodic request before the min pause is put off, a forced one is not."""
    forced = Request(1, Origin.CLOCK, CHECKPOINT, RequestId(""), forced=True)

    assert choose((forced,), quiet(now=59, pause_over_at=60)) == Start(forced)


def test_nothing_starts_while_more_than_max_concurrent_are_being_cleaned_up():
    """C5: not even a forced one, or deletions would fall behind more and more."""
    forced = asked(1, SAVEPOINT, forced=True)

    assert choose((forced,), quiet(cleaning=2)) == Wait()
    assert choose((forced,), quiet(cleaning=1)) == Start(forced)
    assert choose((forced,), quiet(cleaning=2, max_concurrent=2)) == Start(forced)


# Whatever comes, in whatever order

requests = st.builds(
    Request,
    number=st.integers(1, 10_000),
    origin=st.sampled_from(Origin),
    kind=st.sampled_from(CheckpointKind),
    id=st.just(RequestId("r")),
    forced=st.booleans(),
)
histories = st.lists(requests, max_size=30, unique_by=lambda r: r.number)
limits = st.integers(1, 8)
traffics = st.builds(
    Traffic,
    now=st.integers(0, 100),
    in_flight=st.integers(0, 4),
    cleaning=st.integers(0, 4),
    max_concurrent=st.integers(1, 3),
    pause_over_at=st.integers(0, 100),
)


@given(histories, limits)
def test_the_queue_is_never_longer_than_its_limit(history, limit):
    """C5: at most 1,000 queued requests."""
    assert len(a_queue(*history, limit=limit)) <= limit


@given(histories, limits)
def test_every_request_is_either_queued_or_dropped(history, limit):
    """C5: no request is lost or queued twice."""
    queue, dropped = (), []
    for request in history:
        after = enqueue(queue, request, limit)
        queue, dropped = after.queue, [*dropped, *after.dropped]

    assert sorted((*queue, *dropped), key=lambda r: r.number) == sorted(
        history, key=lambda r: r.number
    )


@given(histories, limits)
def test_the_queue_is_always_in_the_order_of_rank(history, limit):
    """C5: savepoint, forced, non-periodic, age."""

    def rank(r):
        return (not r.kind.is_savepoint, not r.forced, r.origin is Origin.CLOCK, r.number)

    queue = a_queue(*history, limit=limit)

    assert list(queue) == sorted(queue, key=rank)


@given(histories, limits)
def test_only_a_periodic_request_or_the_newcomer_ever_falls_out(history, limit):
    """C5: a queued request of a user stays queued."""
    queue = ()
    for request in history:
        after = enqueue(queue, request, limit)
        assert all(gone.is_periodic or gone is request for gone in after.dropped)
        queue = after.queue


@given(histories, traffics)
def test_nothing_that_is_not_forced_starts_above_max_concurrent(history, traffic):
    """C6: one more than allowed is in flight only when it was forced."""
    match choose(a_queue(*history), traffic):
        case Start(request):
            assert request.forced or traffic.in_flight < traffic.max_concurrent


@given(histories, traffics)
def test_nothing_at_all_starts_above_the_limit_of_cleaning(history, traffic):
    """C5: nothing starts while more than max-concurrent checkpoints are being cleaned up."""
    if traffic.cleaning > traffic.max_concurrent:
        assert choose(a_queue(*history), traffic) == Wait()


@given(histories, traffics)
def test_the_request_that_starts_is_the_first_in_the_queue(history, traffic):
    """C5: no request overtakes."""
    queue = a_queue(*history)
    match choose(queue, traffic):
        case Start(request) | PutOff(request, _):
            assert request is queue[0]


@given(histories, traffics)
def test_only_an_unforced_periodic_request_is_put_off_and_only_into_the_future(history, traffic):
    """C5: the pause is for the clock."""
    match choose(a_queue(*history), traffic):
        case PutOff(request, until):
            assert request.is_periodic
            assert not request.forced
            assert until > traffic.now
        case Start(request) if request.is_periodic and not request.forced:
            assert traffic.now >= traffic.pause_over_at


@given(histories, traffics)
def test_a_quiet_job_with_a_request_never_waits(history, traffic):
    """C5: the decider alone never leaves the queue standing."""
    if history and not traffic.in_flight and not traffic.cleaning:
        assert choose(a_queue(*history), traffic) != Wait()
