"""K5: a schedule comes round when cron would have it, in UTC."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.api.config_problem import InvalidValue
from weir_operator.resource.cron import Cron

MOMENT = datetime(2026, 3, 4, 5, 6, 30, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("* * * * *", "2026-03-04 05:07"),
        ("0 * * * *", "2026-03-04 06:00"),
        ("6 5 * * *", "2026-03-05 05:06"),
        ("0 */6 * * *", "2026-03-04 06:00"),
        ("*/20 * * * *", "2026-03-04 05:20"),
        ("5/20 * * * *", "2026-03-04 05:25"),
        ("10,40 3-4 * * *", "2026-03-05 03:10"),
        ("0 0 1 * *", "2026-04-01 00:00"),
        ("0 0 31 * *", "2026-03-31 00:00"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("0 0 * * 0", "2026-03-08 00:00"),
        ("0 0 * * 7", "2026-03-08 00:00"),
        ("0 0 * * 1-5", "2026-03-05 00:00"),
        ("0 0 1 * 1", "2026-03-09 00:00"),  # either day will do
        ("0 0 */1 * 1", "2026-03-09 00:00"),  # a star does not restrict
    ],
)
def test_the_next_time_is_that_of_cron(schedule, expected):
    """K5."""
    assert f"{Cron.parse(schedule).after(MOMENT):%Y-%m-%d %H:%M}" == expected


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "5-0 * * * *",
        "*/0 * * * *",
        "1,,2 * * * *",
        "1- * * * *",
        "0 0 30 2 *",
        "0 0 31 4,6 *",
        "@daily",
        "0 0 * * MON",
    ],
)
def test_what_never_comes_round_is_refused(schedule):
    """K5, U3."""
    with pytest.raises(InvalidValue, match='as in "0 \\*/6'):
        Cron.parse(schedule)


@given(st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)), st.integers(-12, 12))  # noqa: DTZ001
def test_the_next_time_is_after_the_moment_wherever_its_clock_stands(moment, hours):
    """K5: a schedule is in UTC."""
    there = moment.replace(tzinfo=timezone(timedelta(hours=hours)))

    found = Cron.parse("15 */4 * * *").after(there)

    assert timedelta(0) < found - there <= timedelta(hours=4)
    assert (found.tzinfo, found.minute, found.hour % 4) == (UTC, 15, 0)
