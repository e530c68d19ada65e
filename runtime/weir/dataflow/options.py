"""The options of one source or sink, as the user wrote them, and which of them were read.

Names are compared without case, as in Spark. A factory reads the options that it supports; an
option that was not read is probably mistyped, and is refused before the job runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from weir.api.config_problem import InvalidValue, shown_under
from weir.api.duration import parse_duration
from weir.dataflow.name_suggestions import did_you_mean
from weir.errors import JobRejected

_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")

OptionValue = str | bool | int | float


@dataclass(frozen=True, slots=True, eq=False)
class Options(Mapping[str, str]):
    """Strings by name. Going through all of them counts as having asked for all of them."""

    format: str
    given: Mapping[str, str] = field(default_factory=dict)
    declared: pa.Schema | None = None
    _asked: dict[str, None] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema | None:
        """The schema that ``schema(…)`` declared, for sources that need one."""
        self._asked["schema()"] = None
        return self.declared

    def __getitem__(self, name: str) -> str:
        self._asked[name.lower()] = None
        for known, value in self.given.items():
            if known.lower() == name.lower():
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        self._asked.update(dict.fromkeys(name.lower() for name in self.given))
        return iter(self.given)

    def __len__(self) -> int:
        return len(self.given)

    def text(self, name: str, default: str) -> str:
        return self.get(name, default)

    def required(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise JobRejected(
                f"format {self.format!r} needs the option {name!r}",
                "it has no default",
                f'add .option("{name}", …)',
            )
        return value

    def integer(self, name: str, default: int) -> int:
        value = self.get(name)
        if value is None:
            return default
        if not value.strip().removeprefix("-").isdecimal():
            raise self.refusal(name, "this is not a whole number", 'write one, such as "100"')
        return int(value)

    def duration_ms(self, name: str, default: int) -> int:
        value = self.get(name)
        if value is None:
            return default
        try:
            return parse_duration(value)
        except InvalidValue as unfit:
            raise self.refusal(name, unfit.reason, unfit.remedy) from unfit

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.get(name)
        if value is None:
            return default
        if value.strip().lower() not in (*_TRUE, *_FALSE):
            raise self.refusal(name, "this is neither true nor false", "write true or false")
        return value.strip().lower() in _TRUE

    def refusal(self, name: str, cause: str, remedy: str) -> JobRejected:
        """For factories too: names the format, the option, its value, the cause and the remedy."""
        value = shown_under(name, self.get(name, ""))
        return JobRejected(
            f"format {self.format!r}, option {name} = {value}",
            cause,
            remedy,
        )

    def refuse_unread(self) -> None:
        """Refuse what was given and never asked for."""
        unread = [name for name in self.given if name.lower() not in self._asked]
        if unread:
            known = sorted(name for name in self._asked if not name.endswith("()"))
            raise JobRejected(
                f"format {self.format!r} has no option {unread[0]!r}",
                f"its options are: {', '.join(known) or 'none'}",
                f"{did_you_mean(unread[0], known)}remove it",
            )
        if self.declared is not None and "schema()" not in self._asked:
            raise JobRejected(
                f"format {self.format!r} knows its schema",
                "schema(…) would have no effect",
                "leave out schema(…)",
            )


def as_text(value: OptionValue) -> str:
    """Spark writes ``true`` where Python writes ``True``."""
    return str(value).lower() if isinstance(value, bool) else str(value)
