"""Operator state through real slots: killed, restored, made wider and narrower."""

import pytest

from fake_connectors import MORE_0, ONE, READ_0, FakeSink, FakeSource
from operator_state_functions import Holds, a_connected_job, a_function_job
from stepped_slots import SECOND, a_barrier, stepped_slots
from weir.core.barriers import AlignmentType
from weir.core.coordinator.events import EndOfDataReached
from weir.core.ids import SubtaskId
from weir.core.lifecycle import SubtaskRunning
from weir.core.snapshots import Side

WIDTHS = [(1, 3), (3, 1), (2, 3), (3, 2), (2, 2)]


@pytest.fixture
def source():
    return FakeSource(at_once=1, is_bounded=True)


@pytest.fixture
def rules():
    return FakeSource(at_once=1, is_bounded=True)


@pytest.fixture
def sink():
    return FakeSink()


def until_running(job, attempt):
    everyone = job.graph.topology.subtasks
    job.until(lambda: all(SubtaskRunning(attempt, subtask) in job.reports for subtask in everyone))


def started(job):
    job.host()
    until_running(job, 1)
    for subtask in job.graph.topology.subtasks:
        if subtask in (READ_0, MORE_0):
            job.assign(subtask, ONE)


def gone_on(job, manifest):
    """Restore and let both sources come to their ends."""
    job.host(SECOND, manifest)
    until_running(job, SECOND)
    for subtask in job.graph.topology.subtasks:
        if subtask in (READ_0, MORE_0):
            job.assign(subtask, last=True, attempt=SECOND)
    ends = [EndOfDataReached(SECOND, subtask) for subtask in job.graph.topology.subtasks]
    job.until(lambda: all(end in job.reports for end in ends))


def checkpoint(job, *sources):
    for subtask in sources:
        job.send(subtask, a_barrier(1))
    job.until(lambda: job.is_acked(1))
    return job.manifest(1)


def is_read(source):
    return source.readers and source.readers[-1].at == len(source.splits[ONE])


# Lists


def held_by(width, source, sink, function):
    """A checkpoint of a job of this width that has read all there is so far."""
    source.is_bounded = False
    with stepped_slots(a_function_job(source, sink, function, width)) as job:
        started(job)
        job.until(lambda: is_read(source))
        manifest = checkpoint(job, READ_0)
    source.is_bounded = True
    return manifest


@pytest.mark.parametrize(("old", "new"), WIDTHS)
def test_the_rows_of_a_list_state_find_one_subtask_each(old, new, source, sink):
    """S11, R6: none is lost, none is doubled, and the end of input gives them out."""
    source.feed(*range(20))
    manifest = held_by(old, source, sink, Holds())
    source.feed(*range(20, 30))

    with stepped_slots(a_function_job(source, sink, Holds(), new)) as job:
        gone_on(job, manifest)

    assert sorted(sink.written) == list(range(30))


def test_the_rows_of_a_list_state_are_shared_out_evenly(source, sink):
    """S11."""
    source.feed(*range(20))
    manifest = held_by(2, source, sink, Holds())

    with stepped_slots(a_function_job(source, sink, Holds(), 4)) as job:
        gone_on(job, manifest)
        rows = {g.subtask: g.rows_out for g in job.slots[0].mailbox.gauges()}

    assert [rows[SubtaskId("work", index)] for index in range(4)] == [5, 5, 5, 5]


@pytest.mark.parametrize(("old", "new"), WIDTHS)
def test_every_subtask_has_all_rows_of_a_union_list_state(old, new, source, sink):
    """S11: those of all old subtasks."""
    source.feed(*range(20))
    manifest = held_by(old, source, sink, Holds(union=True))

    with stepped_slots(a_function_job(source, sink, Holds(union=True), new)) as job:
        gone_on(job, manifest)

    assert sorted(sink.written) == sorted(list(range(20)) * new)


# Broadcast


def all_heard(rules, width):
    """What each subtask says at its end when it has heard each rule once."""
    return [1001 * len(rules.splits[ONE])] * width


@pytest.mark.parametrize(("old", "new"), WIDTHS)
def test_every_subtask_goes_on_with_all_rules(old, new, source, rules, sink):
    """S11, A10: old ones from the state, new ones from the stream, each once."""
    source.is_bounded = rules.is_bounded = False
    rules.feed(*range(10))
    with stepped_slots(a_connected_job(source, rules, sink, old)) as job:
        started(job)
        job.until(lambda: is_read(rules))
        job.settle()
        manifest = checkpoint(job, READ_0, MORE_0)
    source.is_bounded = rules.is_bounded = True
    rules.feed(*range(10, 15))

    with stepped_slots(a_connected_job(source, rules, sink, new)) as job:
        gone_on(job, manifest)

    assert sink.written == all_heard(rules, new)


@pytest.mark.parametrize(("old", "new"), WIDTHS)
def test_rules_that_were_in_flight_reach_every_subtask_once(old, new, source, rules, sink):
    """A4, A10: a subtask gets the state of an old one and that one's in-flight rules, no other's.

    One old subtask has heard rules that the barrier overtook on their way to another, so taking
    state from the one and rows from the other would lose rules or count them twice. If there is
    only one, it has heard none.
    """
    source.is_bounded = rules.is_bounded = False
    rules.feed(*range(40))
    source.feed(*range(40))
    work = {SubtaskId("work", index): 1 + index for index in range(old)}
    subtask_addresses = {READ_0: 0, MORE_0: 0, SubtaskId("write", 0): 0, **work}
    with stepped_slots(a_connected_job(source, rules, sink, old), subtask_addresses) as job:
        started(job)
        job.settle(*range(old)[:2])
        for subtask in (READ_0, MORE_0):
            job.send(subtask, a_barrier(1, alignment=AlignmentType.UNALIGNED))
        job.settle(0)
        job.until(lambda: job.is_acked(1))
        manifest = job.manifest(1)
    caught = {h.side for s in manifest.snapshots for h in s.in_flight}
    assert Side.OUTPUT in caught
    source.is_bounded = rules.is_bounded = True
    sink.written.clear()

    with stepped_slots(a_connected_job(source, rules, sink, new)) as job:
        gone_on(job, manifest)

    assert [n for n in sink.written if n >= 1000] == all_heard(rules, new)


def test_a_function_has_not_ended_before_both_of_its_inputs_have(source, rules, sink):
    """R6."""
    rules.feed(1)
    with stepped_slots(a_connected_job(source, rules, sink, 1)) as job:
        job.host()
        until_running(job, 1)
        job.assign(MORE_0, ONE, last=True)
        job.settle()
        assert sink.written == []
        job.assign(READ_0, ONE, last=True)
        job.until(lambda: sink.written == [1001])
