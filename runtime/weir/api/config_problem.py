"""Describes why a setting is refused: field, value, reason and remedy, on one line.

Every refusal has a remedy, because its reader needs to know what to change. The line may appear in
a log, an Event or a status, and its value is untrusted input: it is truncated, kept on one line,
and everything in it that looks like a password or a token is masked. This module does not know
which settings exist.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from weir.errors import JobRejected

LONGEST_SHOWN = 80

_PASSWORD = re.compile(r"(?<=://)[^@]*:[^@]*@")
_PARAMETERS = re.compile(r"(?<=://)([^?]*)\?.*", re.DOTALL)
_SECRET_NAME = re.compile(
    r"(?i)secret|passw|token|credential|signature|(access|private|account|api).?key"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One setting that cannot stand. ``field`` is its path in the words of the configuration."""

    field: str
    value: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return str(self.refusal)

    @property
    def refusal(self) -> JobRejected:
        """The same as an error: the field and its value are the problem."""
        return JobRejected(f"{self.field} = {self.value}", self.reason, self.remedy)

    def under(self, path: str) -> "Problem":
        """The same problem as seen from a model that holds this one at ``path``."""
        return replace(self, field=".".join(part for part in (path, self.field) if part))


class InvalidValue(ValueError):
    """One value cannot stand; which field it was given to is known to pydantic alone."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason = reason
        self.remedy = remedy


class Contradictory(ValueError):
    """Values that could each stand alone cannot stand together."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def shown(value: object) -> str:
    """Write a value as the user would recognise it, without its secrets."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case str():
            return _cut(_on_one_line(_without_secrets(value)))
        case Mapping():
            return "{…}"
        case list() | tuple() | set() | frozenset():
            return "[…]"
        case _:
            return _cut(_on_one_line(str(value)))


def shown_under(name: str, value: object) -> str:
    """The value of an unknown field, masked if the field's name looks like that of a secret."""
    return "***" if _SECRET_NAME.search(name) else shown(value)


def names_a_password(url: str) -> bool:
    """Tell ``s3://key:secret@bucket`` from ``abfss://container@account``."""
    return _PASSWORD.search(url) is not None


def _without_secrets(text: str) -> str:
    return _PARAMETERS.sub(r"\1?***", _PASSWORD.sub("***@", text))


def _on_one_line(text: str) -> str:
    is_plain = text.isprintable() and text == text.strip() != ""
    return text if is_plain else json.dumps(text)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
