"""A second copy of state files on the machine's own disk, to restore from without the network.

A copy is only ever a shortcut: it is used only if its length and checksum are those of the file it
stands for, and whatever is wrong with it, or with the disk, the file itself is read instead (spec
S13). So nothing here raises. This module does not know which failures the disk survives.

Every subtask has its own directory of copies, and a marker file in it names the completed
checkpoint that they belong to. A process that dies leaves unreferenced copies; the next owner
deletes them, and a directory without an owner is deleted after many checkpoints have completed
without it.
"""

import logging
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile, rmtree
from uuid import uuid4

import pyarrow as pa
import xxhash

from weir.core.ids import NO_CHECKPOINT, CheckpointId, SubtaskId
from weir.core.snapshots import StateFile

log = logging.getLogger("weir.storage")

DISK = "disk"
"""The file that gives a disk its name."""
MARK = "-complete"
_COPY = re.compile(r"\.?(\d+)-(.+)")
"""A checkpoint, and which of its copies; with a dot before it is finished."""

STRANGE_AFTER = 20
"""So many checkpoints without a word from its subtask, and a directory has no owner."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose copy it is, and of which checkpoint."""

    subtask: SubtaskId
    checkpoint: CheckpointId

    @property
    def name(self) -> str:
        """A directory's name; an operator's id may hold anything."""
        operator = xxhash.xxh3_64_hexdigest(self.subtask.operator.encode())
        return f"{operator}.{self.subtask.index}"


class LocalCopies:
    """Copies under names made of the paths they stand for. Any thread, any process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, owner: Owner, path: str, content: pa.Buffer) -> None:
        self._keep(owner, path, lambda place: _write(place, content))

    def link(self, owner: Owner, path: str, source: Path) -> None:
        """Keep a file that never changes: by a second name of it where the disk is the same."""
        self._keep(owner, path, lambda place: _link_or_copy(source, place))

    def _keep(self, owner: Owner, path: str, make: Callable[[Path], None]) -> None:
        directory = self._directory / owner.name
        unfinished = directory / f".{owner.checkpoint}-{uuid4().hex}"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            make(unfinished)
            unfinished.replace(directory / f"{owner.checkpoint}-{_hash(path)}")
        except OSError as problem:
            log.warning("No local copy of %s: %s", path, problem)
            with suppress(OSError):
                unfinished.unlink()

    def find(self, file: StateFile) -> pa.Buffer | None:
        """The copy, mapped into memory; None if there is no valid copy."""
        return next((content for _, content in self._valid(file)), None)

    def link_to(self, file: StateFile, place: Path) -> bool:
        """Give the copy this name too; False if there is no valid copy, or no way to."""
        for copy, _ in self._valid(file):
            try:
                _link_or_copy(copy, place)
            except OSError as problem:
                log.warning("The local copy of %s is not used: %s", file.path, problem)
                with suppress(OSError):
                    place.unlink(missing_ok=True)
            else:
                return True
        return False

    def _valid(self, file: StateFile) -> Iterator[tuple[Path, pa.Buffer]]:
        for place in self._places(file.segment):
            content = _mapped(place)
            if content is None:
                continue
            if content.size == file.bytes and xxhash.xxh3_64_hexdigest(content) == file.checksum:
                yield place, content
                continue
            log.warning("The local copy of %s is damaged; reading the file itself.", file.path)

    def forget(self, paths: Collection[str]) -> None:
        for path in paths:
            try:
                for place in self._places(path):
                    place.unlink(missing_ok=True)
            except OSError as problem:
                log.warning("The local copy of %s stays: %s", path, problem)

    def _places(self, path: str) -> list[Path]:
        """A subtask may restore what another had written, so every owner's copies count."""
        return sorted(self._directory.glob(f"*.*/[0-9]*-{_hash(path)}"))

    def completed(self, owner: Owner, still: Collection[str]) -> None:
        """The owner's copies are good for this checkpoint; older ones are so only if named here."""
        directory = self._directory / owner.name
        if not directory.is_dir():
            return
        names = {_hash(path) for path in still}
        try:
            (directory / f"{owner.checkpoint}{MARK}").touch()
            for place in directory.iterdir():
                ours = _COPY.fullmatch(place.name)
                if ours and int(ours[1]) < owner.checkpoint and ours[2] not in names:
                    place.unlink(missing_ok=True)
            self._clear_other_owners(owner.checkpoint)
        except OSError as problem:
            log.warning("Local copies of %s stay: %s", owner.subtask, problem)

    def _clear_other_owners(self, completed: CheckpointId) -> None:
        for directory in self._directory.glob("*.*/"):
            found = [_COPY.fullmatch(place.name) for place in directory.glob("[0-9]*")]
            signs = [int(ours[1]) for ours in found if ours]
            if signs and max(signs) + STRANGE_AFTER < completed:
                rmtree(directory, ignore_errors=True)

    def held(self) -> tuple[tuple[int, CheckpointId], ...]:
        """The indexes that have copies here, each with the newest checkpoint they are good for."""
        newest: dict[int, CheckpointId] = {}
        with suppress(OSError):
            for mark in self._directory.glob(f"*.*/*{MARK}"):
                index = int(mark.parent.name.rpartition(".")[2])
                checkpoint = CheckpointId(int(mark.name.removesuffix(MARK)))
                newest[index] = max(checkpoint, newest.get(index, NO_CHECKPOINT))
        return tuple(sorted(newest.items()))

    def disk(self) -> str:
        """The disk's own name: two machines may call theirs the same, and two slots share one."""
        place = self._directory / DISK
        unfinished = self._directory / f".{uuid4().hex}"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(uuid4().hex)
            with suppress(FileExistsError):
                place.hardlink_to(unfinished)
            unfinished.unlink()
            return place.read_text()
        except OSError as problem:
            log.warning("No local copies on %s: %s", self._directory, problem)
            return ""


def _write(place: Path, content: pa.Buffer) -> None:
    place.write_bytes(content)


def _link_or_copy(source: Path, place: Path) -> None:
    try:
        place.hardlink_to(source)
    except OSError:  # another disk, or one without links
        copyfile(source, place)


def _mapped(place: Path) -> pa.Buffer | None:
    """The content of the file; None if it cannot be read or was just deleted."""
    try:
        with pa.memory_map(os.fspath(place)) as mapped:
            return mapped.read_buffer()
    except OSError:
        return None


def _hash(path: str) -> str:
    return xxhash.xxh3_128_hexdigest(path.encode())
