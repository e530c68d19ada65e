"""Writes a partition of a PySpark reader as the name of a split: whole, ordered and signed.

The name begins with the number of the discovery round and the partition's index in it, so that
splits of one source sort in the order of the stream. Then come the offset at which that round
began, from which the remaining splits show how far the stream has been read, and the signed pickle
of the partition.
"""

import json
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

from pyspark.sql.datasource import InputPartition

from weir.connectors.pyspark.pickle_signatures import JobKey
from weir.core.ids import SplitId
from weir.errors import JobRejected

PURPOSE = "partition"

Offset = dict[str, Any]
"""PySpark's word for it: whatever JSON can hold."""


class DiscoveryRound(NamedTuple):
    """One discovery of new data: its number, and the offset at which it began."""

    number: int
    start: Offset


def split_name(key: JobKey, look: DiscoveryRound, place: int, partition: InputPartition) -> SplitId:
    head = f"{look.number:012d}-{place:06d}.{_text(written(look.start).encode())}"
    return SplitId(f"{head}.{_text(key.pickled(f'{PURPOSE} {head}', partition))}")


def round_of(split: SplitId) -> DiscoveryRound:
    """The round that found a split, without loading the pickle."""
    number, start, _ = _parts(split)
    return DiscoveryRound(int(number.partition("-")[0]), json.loads(b64decode(start)))


def partition_of(key: JobKey, split: SplitId, source: str) -> InputPartition:
    number, start, signed = _parts(split)
    purpose = f"{PURPOSE} {number}.{start}"
    what = f"a partition of data source {source}"
    partition = key.unpickled(purpose, b64decode(signed), what)
    assert isinstance(partition, InputPartition), "nothing else is signed as a partition"
    return partition


def written(offset: Offset) -> str:
    """An offset as text; two are the same where their texts are, as in PySpark."""
    return json.dumps(offset)


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _parts(split: SplitId) -> list[str]:
    parts = split.split(".")
    if len(parts) != len(("number", "start", "partition")):
        raise JobRejected(
            f"{split[:40]!r} is no split of a PySpark data source",
            "the checkpoint was taken with another source under this uid",
            "give the new source another uid",
        )
    return parts
