"""Checks the settings of one operator: its uid and its parallelism."""

import re

from weir.core.key_groups import MAX_PARALLELISM_LIMIT
from weir.errors import JobRejected

_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def written_uid(name: str) -> str:
    """A uid becomes a part of file names and messages, so it is plain."""
    if not _UID.fullmatch(name):
        raise JobRejected(
            f"uid {name!r} is not allowed",
            "a uid has up to 100 letters, digits, dots, dashes and underscores and begins with "
            "a letter or a digit",
            "choose another",
        )
    return name


def width(parallelism: int, asked_by: str) -> int:
    if not 1 <= parallelism <= MAX_PARALLELISM_LIMIT:
        raise JobRejected(
            f"{asked_by}({parallelism}) is out of range",
            f"the number must be between 1 and {MAX_PARALLELISM_LIMIT}",
            "choose one in this range",
        )
    return parallelism
