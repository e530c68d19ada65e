"""Reads dates and timestamps that are written as text, as Spark does.

A date may end after its year or month, a time after its hour or minute, a fraction keeps six
digits, and behind the seconds may stand a zone: an offset or the name of a region. Text without a
zone is UTC. A time without a date is not read: Spark would take the date of today, and a replay
must give the same rows.
"""

import datetime as dt
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

BLANK = "".join(map(chr, range(0x21))) + "\x7f"
"""What Spark passes over around a value that is written as text."""

_TIMESTAMP = re.compile(
    r"([+-]?\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(\D.*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)
_ZERO_ZONES = ("Z", "UTC", "GMT", "UT")
_MOST_HOURS, _MOST_MINUTES = 18, 59
_MOST_LONG = 2**63 - 1
_DAYS_IN_400_YEARS = 146_097
_EPOCH = dt.date(1970, 1, 1).toordinal()
_SECONDS_A_DAY = 86_400
_MICROS = 1_000_000


def instant_in(text: str) -> int | None:
    """The microseconds since 1970 of a timestamp; None where there is none."""
    return _micros(text, keeps_zone=True)


def local_time_in(text: str) -> int | None:
    """The same of a timestamp without zone; a zone in the text is passed over."""
    return _micros(text, keeps_zone=False)


def day_in(text: str) -> int | None:
    """The days since 1970 of a date; what stands behind it is passed over."""
    found = _DATE.fullmatch(text.strip(BLANK))
    if not found or (found[3] is None and text[-1] in BLANK):
        return None
    day = _day(found)
    return day if day is not None and abs(day) < 1 << 31 else None


def _micros(text: str, *, keeps_zone: bool) -> int | None:
    found = _TIMESTAMP.fullmatch(text.strip(BLANK))
    if not found:
        return None
    day = _day(found)
    hour, minute, second = (int(found[part] or 0) for part in (4, 5, 6))
    if day is None or hour > 23 or minute > _MOST_MINUTES or second > _MOST_MINUTES:  # noqa: PLR2004
        return None
    seconds = day * _SECONDS_A_DAY + hour * 3600 + minute * 60 + second
    offset = _offset((found[8] or "Z").strip(), seconds)
    if offset is None:
        return None
    shift = offset if keeps_zone else 0
    micros = (seconds - shift) * _MICROS + int((found[7] or "").ljust(6, "0")[:6])
    return micros if abs(micros) <= _MOST_LONG else None


def _day(found: re.Match[str]) -> int | None:
    year, month, day = int(found[1]), int(found[2] or 1), int(found[3] or 1)
    # The calendar repeats every 400 years, and Python's knows the years 1 to 9999 only.
    known = 2000 + year % 400
    try:
        ordinal = dt.date(known, month, day).toordinal()
    except ValueError:
        return None
    return ordinal - _EPOCH + (year - known) // 400 * _DAYS_IN_400_YEARS


def _offset(zone: str, seconds: int) -> int | None:
    """How many seconds the zone is ahead of UTC at that local time; None: no such zone."""
    if zone in _ZERO_ZONES:
        return 0
    # Spark writes single digits with a zero in front before it reads them.
    padded = re.sub(r"([+-])(\d):", r"\g<1>0\2:", zone)
    padded = re.sub(r"([+-]\d\d):(\d)$", r"\1:0\2", padded)
    found = _OFFSET.fullmatch(padded)
    if not found:
        return _offset_of_region(zone, seconds)
    hours, minutes, rest = (int(found[part] or 0) for part in (2, 3, 4))
    if hours > _MOST_HOURS or max(minutes, rest) > _MOST_MINUTES:
        return None
    ahead = hours * 3600 + minutes * 60 + rest
    if ahead > _MOST_HOURS * 3600:
        return None
    return -ahead if found[1] == "-" else ahead


def _offset_of_region(zone: str, seconds: int) -> int | None:
    try:
        region = ZoneInfo(zone)
        local = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)  # noqa: DTZ001 - local
        ahead = region.utcoffset(local)
    except (ZoneInfoNotFoundError, ValueError, OSError, OverflowError):
        return None
    return None if ahead is None else int(ahead.total_seconds())
