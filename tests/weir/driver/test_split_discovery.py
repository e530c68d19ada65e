"""Discovery of a source repeats until the source has named every split."""

from queue import Empty, SimpleQueue

import pytest
from polars.exceptions import PanicException

from fake_connectors import MORE, ONE, READ, TWO, FakeSource
from weir.core.enumerator import Pool, Splits
from weir.core.ids import SplitId
from weir.core.job_master import (
    OperatorCoordinatorFailed,
    OperatorCoordinatorRecovered,
    SplitsFound,
)
from weir.driver import split_discovery
from weir.driver.split_discovery import SplitDiscovery
from weir.errors import JobRejected
from weir.ports.sources import Discovery
from weir.ports.user_code_errors import UserCodeFailed

LONG_ENOUGH = 20.0
FINAL = Discovery((), "end", is_final=True)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(split_discovery, "LOOK_SECONDS", 0.001)


@pytest.fixture
def look():
    """Discover the splits of each source to the end; returns the events in order."""
    begun = []

    def looked(sources, restored=None, events=1):
        heard = SimpleQueue()
        search = SplitDiscovery(sources, heard.put, heard.put)
        begun.append(search)
        search.start(search.pools(restored or {}))
        found = [heard.get(timeout=LONG_ENOUGH) for _ in range(events)]
        with pytest.raises(Empty):
            heard.get_nowait()
        return found

    yield looked
    for search in begun:
        search.close()


def test_a_job_begins_with_nothing_found_and_nothing_final():
    """C4: the first look is still to come, so a reader that asks waits."""
    pools = SplitDiscovery({READ: FakeSource()}, print, print).pools({})
    assert pools == {READ: Splits((), seen="", is_final=False)}


def test_a_restored_job_begins_with_what_its_checkpoint_had():
    """C4, R6."""
    restored = {READ: Pool((ONE,), "page 3"), SplitId("gone"): Pool((TWO,), "")}
    pools = SplitDiscovery({READ: FakeSource()}, print, print).pools(restored)
    assert pools == {READ: Splits((ONE,), seen="page 3", is_final=False)}


def test_a_bounded_source_is_looked_at_once(look):
    """R6."""
    source = FakeSource(found=[Discovery((ONE, TWO), "all", is_final=True)])
    assert look({READ: source}) == [SplitsFound(READ, (ONE, TWO), "all", is_final=True)]
    assert source.asked == [""]


def test_every_look_goes_on_where_the_last_had_come(look):
    """R5: each split is named exactly once over the life of the job."""
    more = Discovery((TWO,), "b", is_final=False)
    source = FakeSource(found=[Discovery((ONE,), "a", is_final=False), more, FINAL])
    found = look({READ: source}, events=3)
    assert [event.splits for event in found] == [(ONE,), (TWO,), ()]
    assert source.asked == ["", "a", "b"]


def test_a_restored_discovery_goes_on_where_the_checkpoint_says(look):
    """C4."""
    source = FakeSource(found=[FINAL])
    look({READ: source}, restored={READ: Pool((), "page 3")})
    assert source.asked == ["page 3"]


def test_a_discovery_without_new_splits_is_not_reported(look):
    """Nothing changes, so no event is sent."""
    source = FakeSource(found=[Discovery((), "", is_final=False), FINAL])
    assert look({READ: source}) == [SplitsFound(READ, (), "end", is_final=True)]


def test_a_look_that_failed_is_tried_again_from_the_same_place(look, caplog):
    """R1: time may heal it."""
    source = FakeSource(found=[OSError("no such bucket"), FINAL])
    look({READ: source})
    assert source.asked == ["", ""]
    assert "read could not look for new splits: no such bucket" in caplog.text


def test_a_panic_of_native_code_does_not_end_the_search(look):
    """R1, R2: it is a failure of the enumerator, and the next look begins at the same place."""
    source = FakeSource(found=[PanicException("overflow"), FINAL])
    failed, recovered, _ = look({READ: source}, events=3)
    assert source.asked == ["", ""]
    assert failed.why.startswith("PanicException: overflow")
    assert recovered == OperatorCoordinatorRecovered(READ)


def test_discovery_pauses_while_too_many_splits_wait():
    """R7: what is found waits in the driver's memory and in every checkpoint."""
    heard, waiting = SimpleQueue(), [split_discovery.MOST_WAITING, split_discovery.MOST_WAITING, 1]
    source = FakeSource(found=[FINAL])
    search = SplitDiscovery({READ: source}, heard.put, heard.put, lambda _: waiting.pop(0))
    search.start(search.pools({}))
    assert heard.get(timeout=LONG_ENOUGH).is_final
    search.close()
    assert waiting == []


def test_a_look_that_can_never_succeed_ends_the_driver(look):
    """U3: the user must change something, and gets the reason."""
    rejected = JobRejected("no splits", "there is no directory file:///in", "make it")
    source = FakeSource(found=[rejected])
    assert look({READ: source}) == [rejected]
    assert source.asked == [""]


def test_sources_are_looked_at_beside_each_other(look):
    """R6."""
    found = look({READ: FakeSource(found=[FINAL]), MORE: FakeSource(found=[FINAL])}, events=2)
    assert {event.operator for event in found} == {READ, MORE}


def test_user_code_that_raises_in_a_look_fails_the_attempt(look):
    """R2, C4: the restart strategy counts it, and the look is made again."""
    failed = UserCodeFailed("latestOffset()", "the start")
    failed.__cause__ = ValueError("no such topic")
    found = look({READ: FakeSource(found=[failed, failed, FINAL])}, events=4)
    why = "latestOffset() failed at the start: ValueError: no such topic"
    assert found[:2] == [OperatorCoordinatorFailed(READ, why, "ValueError")] * 2
    assert found[2] == OperatorCoordinatorRecovered(READ)
    assert found[3] == SplitsFound(READ, (), "end", is_final=True)


def test_an_error_of_the_network_in_user_code_fails_the_attempt_and_may_heal(look):
    """R2: a strategy without restarts gets it at once."""
    failed = UserCodeFailed("latestOffset()", "the start")
    failed.__cause__ = ConnectionResetError("the broker is away")
    first, *_ = look({READ: FakeSource(found=[failed, FINAL])}, events=3)
    assert (type(first), first.error) == (OperatorCoordinatorFailed, "")
