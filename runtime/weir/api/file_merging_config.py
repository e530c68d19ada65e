"""How the small files of snapshots become few, named as Flink's ``file-merging``.

Flink's switch for merging across checkpoints has no counterpart: files that later checkpoints refer
to are always merged, and their waste is bounded.
"""

from typing import Annotated

from pydantic import StrictBool, StrictFloat

from weir.api.bounds import Bounds
from weir.api.model import Model
from weir.api.size import GIB, MIB, Size


class FileMergingConfig(Model):
    """How the subtasks of a slot share the files of their snapshots."""

    enabled: StrictBool = False
    """Put the snapshots of all subtasks of a slot into few files."""

    max_file_size: Annotated[
        Size,
        Bounds(
            least=1,
            most=GIB,
            because="a slot holds a file in memory until it is written",
            remedy="use 1 B to 1 GiB, as in 32 MiB",
        ),
    ] = 32 * MIB
    """Merging makes no larger file; larger state has a separate file."""

    max_space_amplification: Annotated[
        StrictFloat,
        Bounds(
            least=1,
            because="state cannot take less space than its bytes",
            remedy="use 1.0 or more, as in 2.0",
        ),
    ] = 2.0
    """How many bytes of files one byte of incremental state may take. Above that, state is written
    anew."""

    pool_blocking: StrictBool = False
    """Write a file when every subtask of the slot has added its part; otherwise after a second at
    most."""
