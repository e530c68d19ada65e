"""A second copy of state files on the machine's own disk, to restore from without the network.

A copy is only ever a shortcut: it is believed when its length and checksum are those of the file it
stands for, and whatever is wrong with it, or with the disk, the file itself is read instead (spec
S13). So nothing here raises. Whether the disk survives what the job may suffer is not known here.
"""

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import xxhash

from weir.core.snapshots import StateFile

log = logging.getLogger("weir.storage")


class LocalCopies:
    """Copies under names made of the paths they stand for. Any thread, any process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, path: str, content: pa.Buffer) -> None:
        place = self._place(path)
        unfinished = place.with_name(f".{uuid4().hex}")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(content)
            unfinished.replace(place)
        except OSError as problem:
            log.warning("No local copy of %s: %s", path, problem)
            with suppress(OSError):
                unfinished.unlink()

    def find(self, file: StateFile) -> pa.Buffer | None:
        """The copy, mapped into memory; None if there is none that can be believed."""
        try:
            with pa.memory_map(os.fspath(self._place(file.path))) as mapped:
                content = mapped.read_buffer()
        except OSError:
            return None
        if content.size == file.bytes and xxhash.xxh3_64_hexdigest(content) == file.checksum:
            return content
        log.warning("The local copy of %s is damaged; reading the file itself.", file.path)
        return None

    def forget(self, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                self._place(path).unlink(missing_ok=True)
            except OSError as problem:
                log.warning("The local copy of %s stays: %s", path, problem)

    def _place(self, path: str) -> Path:
        return self._directory / xxhash.xxh3_128_hexdigest(path.encode())
