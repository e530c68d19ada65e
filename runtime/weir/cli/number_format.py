"""Formats numbers for people: rounded, with a unit, and of a constant width."""

SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
COUNTS = ("", "k", "M", "G")
SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS


def size(amount: float) -> str:
    return _scaled(amount, 1_024, SIZES)


def count(amount: float) -> str:
    return _scaled(amount, 1_000, COUNTS)


def duration(millis: float) -> str:
    if millis < SECOND_MS:
        return f"{millis:.0f} ms"
    if millis < MINUTE_MS:
        return f"{millis / SECOND_MS:.1f} s"
    if millis < HOUR_MS:
        return f"{millis / MINUTE_MS:.1f} min"
    return f"{millis / HOUR_MS:.1f} h"


def _scaled(amount: float, step: int, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if amount < step:
            return _written(amount, unit, is_whole=unit == units[0])
        amount /= step
    return _written(amount, units[-1], is_whole=False)


def _written(amount: float, unit: str, *, is_whole: bool) -> str:
    return (f"{amount:.0f}" if is_whole else f"{amount:.1f}") + (f" {unit}" if unit else "")
