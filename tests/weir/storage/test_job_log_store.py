"""The job's log in storage: who has written which entry, and what a reader may believe."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from weir.core.ids import CheckpointId, Epoch
from weir.core.log_entries import CheckpointLogged, EpochTaken, IdsReserved
from weir.core.snapshots import CheckpointKind
from weir.errors import JobRejected, Unavailable
from weir.storage.job_log_store import JobLog
from weir.storage.memory_store import MemoryStore
from weir.storage.stores import OutcomeUnknown

DIRECTORY = "memory://j1"


def entry(number, driver="driver-a"):
    return IdsReserved(Epoch(1), driver, CheckpointId(number))


def taken(driver):
    return EpochTaken(
        epoch=Epoch(2),
        driver=driver,
        deployment="d",
        goes_on=True,
        restoring="",
        claims=False,
        ids_until=CheckpointId(32),
    )


def log_of(place):
    return JobLog(place.store, place.directory)


def filled(log, count):
    for index in range(count):
        assert log.create(index, entry(index))
    return log


class Moody(MemoryStore):
    """Listings may be stale, and looking may fail or take so long that the world moves on."""

    def __init__(self):
        super().__init__()
        self.lists = True
        self.problem = None
        self.before_reading = {}

    def list(self, directory):
        return super().list(directory) if self.lists else ()

    def exists(self, url):
        if self.problem is not None:
            raise self.problem
        return super().exists(url)

    def read(self, url):
        self.before_reading.pop(url.rpartition("/")[2], lambda: None)()
        return super().read(url)


def test_a_log_that_was_never_written_is_empty(place):
    """C17: a job that never ran."""
    assert log_of(place).read() == ()


def test_entries_are_read_as_they_were_created(place):
    """C17: epochs and completions take turns."""
    log = log_of(place)
    logged = CheckpointLogged(
        epoch=Epoch(2),
        driver="a",
        checkpoint=CheckpointId(3),
        kind=CheckpointKind.SAVEPOINT,
        manifest="s3://b/sp/_metadata",
        ids_until=CheckpointId(40),
        numbers=(("sink", 7),),
    )

    assert log.create(0, taken("a"))
    assert log.create(1, logged)
    assert log.read() == ((0, taken("a")), (1, logged))


def test_a_zombie_loses_the_entry_that_its_successor_took(place):
    """C17: a takeover consumes the entry that a zombie needs."""
    zombie, successor = filled(log_of(place), 2), log_of(place)

    assert successor.create(2, taken("driver-b"))
    assert not zombie.create(2, entry(2))
    assert successor.read()[-1] == (2, taken("driver-b"))


def test_creating_the_same_entry_again_finds_it_ours(place):
    """C17: the answer of the first try was lost."""
    log = filled(log_of(place), 2)

    assert log.create(1, entry(1))


def test_a_driver_that_slept_through_truncations_is_fenced(place):
    """C17: its number is free again, but the entry before it is gone."""
    sleeper, others = log_of(place), filled(log_of(place), 9)
    others.truncate(6)

    assert not sleeper.create(3, entry(3, "sleeper"))
    assert [index for index, _ in others.read()] == [6, 7, 8]


def test_a_successor_is_seen_by_the_entry_it_took(place):
    """C17: the loser finds out by itself."""
    log = filled(log_of(place), 2)

    assert not log.is_taken(2)
    assert log_of(place).create(2, taken("driver-b"))
    assert log.is_taken(2)


def test_a_successor_of_long_ago_is_seen_by_what_is_gone(place):
    """C17: its entry was truncated since, and ours before it too."""
    log = filled(log_of(place), 9)
    log.truncate(6)

    assert log.is_taken(3)


def test_a_truncated_log_begins_at_its_floor(place):
    """C17: old entries go, far behind the end."""
    log = filled(log_of(place), 6)

    log.truncate(4)

    assert log.read() == ((4, entry(4)), (5, entry(5)))
    assert log.create(6, entry(6))


def test_of_racing_drivers_one_takes_the_epoch(place):
    """C17: two drivers never own the job at once."""
    filled(log_of(place), 3)
    drivers = [f"driver-{n}" for n in range(8)]

    with ThreadPoolExecutor(len(drivers)) as pool:
        won = list(pool.map(lambda name: log_of(place).create(3, taken(name)), drivers))

    assert won.count(True) == 1
    assert log_of(place).read()[-1][1].driver == drivers[won.index(True)]


def test_a_stale_listing_hides_nothing():
    """C17: listings are hints."""
    store = Moody()
    log = filled(JobLog(store, DIRECTORY), 4)
    store.lists = False

    assert [index for index, _ in log.read()] == [0, 1, 2, 3]


def test_a_truncated_log_whose_entries_cannot_be_seen_is_read_again():
    """C17: one that was ever truncated is not empty."""
    store = Moody()
    log = filled(JobLog(store, DIRECTORY), 4)
    log.truncate(2)
    store.delete([f"{DIRECTORY}/log/{k:012d}" for k in range(4)])

    assert log.read() is None


def test_a_truncation_during_a_read_makes_it_inconclusive():
    """C17: what was taken from under a reader is not what never was."""
    store = Moody()
    log = filled(JobLog(store, DIRECTORY), 9)
    store.lists = False

    def truncate():
        store.lists = True
        log.truncate(6)

    store.before_reading[f"{0:012d}"] = truncate

    assert log.read() is None
    assert [index for index, _ in log.read()] == [6, 7, 8]


def test_a_truncation_never_lowers_the_floor():
    """C17: a zombie that wakes up truncates, too."""
    log = filled(JobLog(MemoryStore(), DIRECTORY), 9)
    log.truncate(6)
    log.truncate(2)

    assert [index for index, _ in log.read()] == [6, 7, 8]


@pytest.mark.parametrize(
    "problem",
    [Unavailable("no answer", retry_after=1.0), JobRejected("no access", "a policy", "change it")],
)
def test_a_created_entry_whose_predecessor_cannot_be_seen_is_in_doubt(problem):
    """C18: reported, never assumed."""
    store = Moody()
    log = filled(JobLog(store, DIRECTORY), 1)
    store.problem = problem

    with pytest.raises(OutcomeUnknown, match=str(problem)):
        log.create(1, entry(1))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"$":"TimePassed","now":1}', b"\xff"])
def test_an_entry_that_cannot_be_read_is_named(content):
    """S8, C17: a damaged log is refused with its path."""
    store = MemoryStore()
    store.write(f"{DIRECTORY}/log/{0:012d}", content)

    with pytest.raises(JobRejected, match=r"memory://j1/log/000000000000 .* cannot be read"):
        JobLog(store, DIRECTORY).read()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"floor": null}'])
def test_a_floor_that_cannot_be_read_is_named(content):
    """C17: guessing it could hide entries."""
    store = MemoryStore()
    store.write(f"{DIRECTORY}/log/floor", content)

    with pytest.raises(JobRejected, match="memory://j1/log/floor of the job's log cannot be read"):
        JobLog(store, DIRECTORY).read()


def test_an_entry_is_json_that_a_person_can_read():
    """S8: the log explains itself."""
    store = MemoryStore()
    filled(JobLog(store, DIRECTORY), 1)

    assert json.loads(store.read(f"{DIRECTORY}/log/{0:012d}")) == {
        "$": "IdsReserved",
        "epoch": 1,
        "driver": "driver-a",
        "ids_until": 0,
    }
