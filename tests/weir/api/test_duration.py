"""Durations are read as people write them, and written so that they are read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.api.duration import DAY, HOUR, MINUTE, SECOND, format_duration, parse_duration

DURATIONS = st.integers(0, 365 * DAY)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("10 s", 10 * SECOND),
        ("500ms", 500),
        ("1 min", MINUTE),
        ("5m", 5 * MINUTE),
        ("2h", 2 * HOUR),
        ("7 days", 7 * DAY),
        ("1h30m", HOUR + 30 * MINUTE),
        ("1 min 30 s", MINUTE + 30 * SECOND),
        (" 3 Seconds ", 3 * SECOND),
        ("250", 250),
        (250, 250),
        (0, 0),
        ("365 d", 365 * DAY),
    ],
)
def test_durations_are_read_as_flink_and_go_write_them(written, meant):
    assert parse_duration(written) == meant


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("soon", "not a duration"),
        ("", "not a duration"),
        ("s", "not a duration"),
        ("1.5 s", "not a duration"),
        ("1 h 30", "not a duration"),
        ("10 s!", "not a duration"),
        ("1s" * 40, "not a duration"),
        ("٣ s", "not a duration"),
        (1.5, "not a duration"),
        (True, "not a duration"),
        (None, "not a duration"),
        ("10 us", '"us" is no unit of duration'),
        ("2 months", '"months" is no unit of duration'),
        ("-1 s", "never negative"),
        ("- 1 s", "never negative"),
        ("-5", "never negative"),
        (-1, "never negative"),
        ("366 d", "no duration is above 365 d"),
        (365 * DAY + 1, "no duration is above 365 d"),
    ],
)
def test_what_is_not_clear_is_refused(written, complaint):
    with pytest.raises(ValueError, match=complaint):
        parse_duration(written)


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        (0, "0 ms"),
        (1_500, "1500 ms"),
        (5_000, "5 s"),
        (90_000, "90 s"),
        (600_000, "10 min"),
        (2 * HOUR, "2 h"),
        (3 * DAY, "3 d"),
    ],
)
def test_a_duration_is_written_in_its_largest_whole_unit(amount, written):
    assert format_duration(amount) == written


@given(DURATIONS)
def test_what_is_written_is_read_back(amount):
    assert parse_duration(format_duration(amount)) == amount


PART = st.tuples(st.integers(0, 60), st.sampled_from(["ms", "s", "min", "h", "d"]))
"""Six of them are less than a year."""


@given(st.lists(PART, min_size=1, max_size=6))
def test_the_parts_of_a_duration_add_up(parts):
    written = [f"{count} {unit}" for count, unit in parts]

    assert parse_duration(" ".join(written)) == sum(map(parse_duration, written))


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused_with_a_remedy(written):
    try:
        assert 0 <= parse_duration(written) <= 365 * DAY
    except ValueError as refusal:
        reason, _, remedy = str(refusal).partition("; ")
        assert reason
        assert remedy
