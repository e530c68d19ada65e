"""Computes the times of a cron schedule in UTC.

Five fields: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday). Each is a
``*``, a number, a range or a list of those, with a step after a slash. When both kinds of day are
restricted, either matches, as in cron. Names of months and days are not supported. A schedule that
never matches, such as the 30th of February, is rejected.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Self

from pydantic.json_schema import JsonSchemaValue

from weir.api.config_problem import InvalidValue
from weir.api.constraint import Constraint

REMEDY = 'write minute, hour, day, month and weekday as numbers, as in "0 */6 * * *"'

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))
_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?", re.ASCII)
_FIELD = r"[0-9*][0-9*,/-]{0,63}"
_PATTERN = rf"^{_FIELD}( {_FIELD}){{4}}$"
_LONGEST = 128
_SUNDAY_TOO = 7
_LONGEST_WAIT = timedelta(
    days=366 * 9
)  # from one 29th of February to the next, at a century's turn
_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule, as the numbers at which each field fits."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        if len(text) > _LONGEST or not re.fullmatch(_PATTERN, text):
            raise InvalidValue("this is not a schedule", REMEDY)
        fields = text.split(" ")
        minutes, hours, days, months, weekdays = (
            _numbers(field, *limits) for field, limits in zip(fields, _FIELDS, strict=True)
        )
        cron = cls(
            tuple(sorted(minutes)),
            tuple(sorted(hours)),
            days,
            months,
            frozenset(day % _SUNDAY_TOO for day in weekdays),
            either_day=not (fields[2].startswith("*") or fields[4].startswith("*")),
        )
        if cron._first_after(_SOME_DAY) is None:
            raise InvalidValue("no month has such a day", REMEDY)
        return cron

    def after(self, moment: datetime) -> datetime:
        """The first time strictly after a moment."""
        found = self._first_after(moment.astimezone(UTC))
        assert found is not None, "a schedule that never comes round was refused"
        return found

    def _first_after(self, moment: datetime) -> datetime | None:
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        end = midnight + _LONGEST_WAIT
        while midnight < end:
            if self._has_day(midnight):
                for hour in self.hours:
                    for minute in self.minutes:
                        time = midnight.replace(hour=hour, minute=minute)
                        if time > moment:
                            return time
            midnight += timedelta(days=1)
        return None

    def _has_day(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        fits = day.day in self.days, day.isoweekday() % _SUNDAY_TOO in self.weekdays
        return any(fits) if self.either_day else all(fits)


def _numbers(field: str, noun: str, least: int, most: int) -> frozenset[int]:
    numbers: set[int] = set()
    for part in field.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            raise InvalidValue(f'"{part}" is no {noun}', REMEDY)
        first, last, step = (int(number) if number else None for number in found.groups())
        # As in cron, "5/15" continues to the end, and "5" alone is only itself.
        start = least if first is None else first
        end = last
        if end is None:
            end = start if first is not None and step is None else most
        if step == 0 or not least <= start <= end <= most:
            raise InvalidValue(f'"{part}" is no {noun} from {least} to {most}', REMEDY)
        numbers.update(range(start, end + 1, step or 1))
    return frozenset(numbers)


@dataclass(frozen=True, slots=True)
class _Schedule(Constraint):
    def check(self, text: str) -> str:
        Cron.parse(text)
        return text

    def shown_in(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        return schema | {"pattern": _PATTERN, "maxLength": _LONGEST}


Schedule = Annotated[str, _Schedule()]
"""A schedule that ``Cron.parse`` can read."""
