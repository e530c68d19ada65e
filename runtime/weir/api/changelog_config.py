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
    """Log the changes of keyed state, and upload them between checkpoints too, so that a checkpoint
    only adds the newest ones."""

    materialization_interval: Annotated[
        Duration,
        Bounds(
            least=1_000,
            because="the whole state is uploaded each time",
            remedy="use a second or more, as in 10min",
        ),
    ] = 600_000
    """How often the whole state is written in the background, which makes the log short again; also
    when the log has become larger than the state."""

    preemptive_persist_threshold: Annotated[
        Size,
        Bounds(
            least=LEAST_PREEMPTIVE_BYTES,
            most=GIB,
            because="each upload is a file, and a slot holds it in memory until it is written",
            remedy="use 64 KiB to 1 GiB, as in 5 MiB",
        ),
    ] = 5 * MIB
    """So many bytes of changes are uploaded before a checkpoint asks for them."""
