"""Checks what a user asks of one operator: its name for good, and how wide it is."""

import re

from weir.core.key_groups import MAX_PARALLELISM_LIMIT
from weir.errors import JobRejected

_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def written_uid(name: str) -> str:
    """A uid becomes a part of file names and messages, so it is plain."""
    if not _UID.fullmatch(name):
        raise JobRejected(
            f"uid {name!r}: up to 100 letters, digits, dots, dashes and underscores make a uid, "
            "and the first is a letter or a digit; choose another"
        )
    return name


def width(parallelism: int, asked_by: str) -> int:
    if not 1 <= parallelism <= MAX_PARALLELISM_LIMIT:
        raise JobRejected(
            f"{asked_by}({parallelism}): the number must be between 1 and {MAX_PARALLELISM_LIMIT}"
        )
    return parallelism
