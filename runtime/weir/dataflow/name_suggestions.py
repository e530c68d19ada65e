"""Finds what a mistyped name was probably meant to be, for the messages that refuse it."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """The start of a remedy: ``did you mean 'value'? If not, ``, or nothing if no name is near."""
    by_lower = {name.lower(): name for name in known}
    near = get_close_matches(wrong.lower(), by_lower, n=1)
    return f"did you mean {by_lower[near[0]]!r}? If not, " if near else ""
