"""Reads a table of specifications that are refused.

Four lines each: a promise, the user's specification, the operator's message, and what refuses it
first: ``schema`` or ``rule`` (the API server), or ``operator`` with the reason why neither can
before. The user's specification is laid over a sound specification, with null for what they left
out; an edit has the specification before it, an arrow, and the one after it.
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
            *before, after = (laid_over(SOUND, json.loads(part)) for part in given.split(EDIT))
            yield Case(promise, after, before[0] if before else None, line, refused_by)


def laid_over(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """The fields of both; those above win, and null leaves one out."""
    merged = copy.deepcopy(dict(below))
    for name, value in above.items():
        under = merged.get(name)
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(under, dict):
            merged[name] = laid_over(under, value)
        else:
            merged[name] = copy.deepcopy(value)
    return merged
