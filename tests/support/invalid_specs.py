"""Reads a table of invalid specifications.

Four lines each: a promise, what a user wrote, the message of the operator, and what rejects it
first: ``schema`` or ``rule`` (the API server), or ``operator`` with the reason why the API server
cannot. What the user wrote is merged over a valid specification, with null for what is left out; an
edit has the specification before it, an arrow, and the one after it.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SOUND: Mapping[str, object] = {
    "image": "localhost/weir:dev",
    "job": {"file": "/opt/job.py"},
    "checkpointing": {"interval": "10 s", "storage": "s3://bucket/checkpoints"},
}
EDIT = " -> "


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    promise: str
    spec: dict[str, object]
    before: dict[str, object] | None
    line: str
    refused_by: str


def cases(table: Path) -> Iterator[Case]:
    for block in table.read_text(encoding="utf-8").split("\n\n"):
        if not block.startswith("#"):
            promise, given, line, refused_by = block.strip().split("\n")
            *before, after = (overlaid(SOUND, json.loads(part)) for part in given.split(EDIT))
            yield Case(promise, after, before[0] if before else None, line, refused_by)


def overlaid(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """The fields of both; those above win, and null leaves one out."""
    merged = copy.deepcopy(dict(below))
    for name, value in above.items():
        under = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(under, dict):
            merged[name] = overlaid(under, value)
        else:
            merged[name] = copy.deepcopy(value)
    return merged
