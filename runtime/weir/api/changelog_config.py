"""The settings of the changelog of keyed state, named as Flink's ``state.changelog``.

Flink's delay of uploads has no counterpart: tails are merged into one file for the slot by file
merging, and without it each has its own.
"""

from typing import Annotated

from pydantic import StrictBool

from weir.api.bounds import Bounds
from weir.api.duration import Duration
from weir.api.model import Model
from weir.api.size import GIB, KIB, MIB, Size

LEAST_PREEMPTIVE_BYTES = 64 * KIB


class ChangelogConfig(Model):
    """Whether changes of keyed state are uploaded as they are made, and how."""

    enabled: StrictBool = False
    """Upload changes of keyed state as they are made."""

    materialization_interval: Annotated[
        Duration,
        Bounds(
            least=1_000,
            because="it is the whole state",
            remedy="use 1 s or more",
        ),
    ] = 600_000
    """How often the whole state is written, which truncates the log."""

    preemptive_persist_threshold: Annotated[
        Size,
        Bounds(
            least=LEAST_PREEMPTIVE_BYTES,
            most=GIB,
            because="a slot holds it in memory",
            remedy="use 64 KiB to 1 GiB",
        ),
    ] = 5 * MIB
    """Changes of this size do not wait for a checkpoint."""
