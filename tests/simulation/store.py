"""A simulated object store: slow, failing, forgetful, and sometimes silent about what it did.

Reads of a single object are consistent, as object stores promise; listings may be stale. A write
may succeed, surely fail, leave a damaged object behind, or stay without an answer after it
happened. The job's log lies in a directory: a link fails with an error of the operating system, and
production code decides what that means. Deleting checks with the oracle first: no file that is
referred to may be deleted. Some files cannot be deleted for long, though not beyond the end of
their job, which could wait no longer.
"""

import errno
import os
from collections.abc import Callable

from simulation.scenario import Chances
from simulation.world import World
from weir.core.coordinator.deletion import DELETE_TRIES
from weir.core.ids import Epoch
from weir.core.log_entries import Entry, JobClosed, above, is_conclusive, to_probe
from weir.core.retention import StoredFile
from weir.errors import WeirError
from weir.storage.file_store import link_error

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"

BEFORE_THE_LINK = (errno.ENOSPC, errno.EDQUOT)
BEFORE_OR_AFTER = (errno.EIO, errno.ETIMEDOUT, errno.ESTALE)
"""What a network file system answers when it does not know whether the server has linked."""

EntryAnswer = Callable[[str | WeirError], None]
"""Called with ``OK``, ``taken``, or the meaning of the link's error."""


class Damage:
    """What a partial write leaves."""


class Store:
    """Files and the job's log."""

    def __init__(self, world: World, chances: Chances) -> None:
        self.world = world
        self.chances = chances
        self.files: dict[str, object] = {}
        self.epochs: dict[str, Epoch] = {}
        self.log: dict[int, Entry] = {}
        self.floor = 0
        self.stubborn: dict[str, int] = {}
        """How often a deletion that begins with this file will still be refused."""
        self.protected: Callable[[str], bool] = lambda _: False

    def put(self, path: str, value: object, epoch: Epoch, done: Callable[[str], None]) -> None:
        self.world.at(self.latency(), self._put, path, value, epoch, done)

    def _put(self, path: str, value: object, epoch: Epoch, done: Callable[[str], None]) -> None:
        done(self.put_now(path, value, epoch))

    def put_now(self, path: str, value: object, epoch: Epoch) -> str:
        outcome = self._outcome()
        if outcome == "partial":
            self.files.setdefault(path, Damage())
            self.epochs.setdefault(path, epoch)
            return FAILED
        if outcome in (OK, "unknown, done"):
            self._write(path, value, epoch)
        return outcome.split(",", maxsplit=1)[0]

    def _write(self, path: str, value: object, epoch: Epoch) -> None:
        present = self.files.get(path)
        if present is not None and not isinstance(present, Damage) and present != value:
            self.world.violated(f"{path} was written twice with different content")
        self.files[path] = value
        self.epochs[path] = epoch

    def create_entry(self, index: int, entry: Entry, done: EntryAnswer) -> None:
        """Exclusive; ours found there is success, another's or a lost predecessor is 'taken'."""
        self.world.at(self.latency(), self._create_entry, index, entry, done)

    def _create_entry(self, index: int, entry: Entry, done: EntryAnswer) -> None:
        outcome = self._outcome()
        if outcome in ("partial", FAILED):
            done(_link_failed(index, BEFORE_THE_LINK))
            return
        if outcome == "unknown, not done":
            done(_link_failed(index, BEFORE_OR_AFTER))
            return
        found = self.log.setdefault(index, entry)
        if outcome == "unknown, done":
            if found == entry:
                self.world.saw("fault: error after the entry was stored")
            done(_link_failed(index, BEFORE_OR_AFTER))
            return
        is_fenced = found != entry or (index and index - 1 not in self.log)
        done("taken" if is_fenced else OK)

    def look(self, index: int, done: Callable[[str], None]) -> None:
        """Whether an entry of this number exists, or existed: then its predecessor was deleted."""
        self.world.at(self.latency(), self._look, index, done)

    def _look(self, index: int, done: Callable[[str], None]) -> None:
        if self._outcome() != OK:
            done(UNKNOWN)
        else:
            is_taken = index in self.log or index - 1 not in self.log
            done("taken" if is_taken else "free")

    def truncate(self, below: int) -> None:
        """The floor is noted first: a truncated log is never taken for an empty one."""
        self.floor = below
        for index in sorted(self.log):
            if index < below:
                del self.log[index]

    def read_log(self) -> tuple[tuple[int, Entry], ...] | None:
        """To the end: a stale listing is only a hint, single entries are read and found.

        None when even that shows nothing of a log that has been truncated.
        """
        found = dict(self.log)
        if self.world.chance(self.chances.stale_listing):
            self.world.saw("fault: stale listing")
            shown = self.world.rng.choice((0.0, 0.5))
            found = {k: e for k, e in self.log.items() if self.world.rng.random() < shown}
        absent: frozenset[int] = frozenset()
        while (index := to_probe(found, absent, self.floor)) is not None:
            if index in self.log:
                found[index] = self.log[index]
            else:
                absent |= {index}
        return above(found, self.floor) if is_conclusive(found, self.floor) else None

    def epoch(self) -> Epoch:
        """Of the newest driver in the log."""
        return max((entry.epoch for entry in self.log.values()), default=Epoch(0))

    def delete(self, paths: tuple[str, ...], done: Callable[[str], None]) -> None:
        self.world.at(self.latency(), self._delete, paths, done)

    def _delete(self, paths: tuple[str, ...], done: Callable[[str], None]) -> None:
        done(self.delete_now(paths))

    def delete_now(self, paths: tuple[str, ...]) -> str:
        """In order, so that an interrupted deletion still has its manifest."""
        if self._keeps(paths[0]):
            return FAILED
        outcome = self._outcome()
        reach = len(paths)
        if outcome != OK:
            reach = self.world.rng.randint(0, len(paths))
        for path in paths[:reach]:
            if self.protected(path):
                self.world.violated(f"{path} was deleted while something refers to it")
            self.files.pop(path, None)
            self.epochs.pop(path, None)
        return OK if outcome == OK else FAILED

    def _keeps(self, path: str) -> bool:
        """What lies where people may want a savepoint is given up early, so it is not kept."""
        if not self.chances.store_keeps or not ("/chk-" in path or "/shared/" in path):
            return False
        if path not in self.stubborn and self.world.chance(self.chances.store_keeps):
            self.world.saw("fault: deletion refused for long")
            self.stubborn[path] = DELETE_TRIES + self.world.rng.randint(0, 6)
        left = self.stubborn.get(path, 0)
        self.stubborn[path] = max(left - 1, 0)
        return left > 0 and not self.is_closed()

    def is_closed(self) -> bool:
        """Whether the log is closed."""
        return isinstance(self.log.get(max(self.log, default=-1)), JobClosed)

    def stored(self) -> tuple[StoredFile, ...]:
        return tuple(StoredFile(path, self.epochs[path]) for path in sorted(self.files))

    def latency(self) -> int:
        if self.world.chance(self.chances.store_slow):
            self.world.saw("fault: slow storage")
            return self.world.delay(60, 400)
        return self.world.delay(1, 8)

    def _outcome(self) -> str:
        world, chances = self.world, self.chances
        if world.chance(chances.store_fails):
            world.saw("fault: storage fails")
            return FAILED
        if world.chance(chances.store_unknown):
            world.saw("fault: storage does not answer")
            return world.rng.choice(("unknown, done", "unknown, not done"))
        if world.chance(chances.store_partial):
            world.saw("fault: partial write")
            return "partial"
        return OK


def _link_failed(index: int, numbers: tuple[int, ...]) -> WeirError:
    number = numbers[index % len(numbers)]
    return link_error(f"file:///job/log/{index}", OSError(number, os.strerror(number)))
