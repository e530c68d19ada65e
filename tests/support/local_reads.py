"""Writes down, inside the slots of a real job, which state they read from local copies.

A slot does not report where it found its state, and for the job it makes no difference. A test of
local recovery needs to know: else it could pass without a copy ever having been read.
"""

from pathlib import Path

import pyarrow as pa

from weir.core.snapshots import StateFile
from weir.storage.local_copies import LocalCopies

NAME = "local-reads"


def write_down_local_reads(directory: Path) -> None:
    """From now on this process, and all that it forks, append the path of each file to a list."""
    find = LocalCopies.find

    def found(copies: LocalCopies, file: StateFile) -> pa.Buffer | None:
        copy = find(copies, file)
        if copy is not None:
            with (directory / NAME).open("a") as reads:
                reads.write(f"{file.path}\n")
        return copy

    setattr(LocalCopies, "find", found)  # noqa: B010 - in the processes of a test only


def local_reads(directory: Path) -> list[str]:
    """The files of which a local copy was read, in the order of reading."""
    path = directory / NAME
    return path.read_text().splitlines() if path.exists() else []
