"""Durations as Flink and Go write them: "10 s", "500ms", "1 min", "2h", "1h30m".

In Python a duration is a whole number of milliseconds, the unit of every clock in Weir, and a bare
number means those. There are no months, no fractions and nothing finer than a millisecond: a
checkpoint's timer could not keep such a promise. The longest is a year, as in Flink's coordinator,
so that sums of durations fit into every codec.
"""

from typing import Annotated

from weir.api.quantity import Quantity

MILLISECOND = 1
SECOND = 1_000 * MILLISECOND
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_DURATION = Quantity(
    noun="duration",
    units={"ms": MILLISECOND, "s": SECOND, "min": MINUTE, "h": HOUR, "d": DAY},
    synonyms={
        **dict.fromkeys(("milli", "millis", "millisecond", "milliseconds"), "ms"),
        **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
        **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
        **dict.fromkeys(("hour", "hours"), "h"),
        **dict.fromkeys(("day", "days"), "d"),
    },
    most=365 * DAY,
    example="10 s",
)

Duration = Annotated[int, _DURATION]
"""Milliseconds; text with a unit outside of Python."""

parse_duration = _DURATION.parse
format_duration = _DURATION.format
