"""The table and the line that show a running job."""

import io

from rich.console import Console

from fake_job_view import FakeJobView
from weir.cli import number_format
from weir.cli.progress_table import Reading, headline, line, paces, table


def reading(at_ms, rows=0, busy_ms=0, job=None):
    """So many rows and so much work more in each subtask than at the beginning."""
    job = job or FakeJobView()
    graph = job.graph()
    more = {"rows_in": 1_000 + rows, "rows_out": 10 + rows, "busy_ms": 400 + busy_ms}
    operators = tuple(
        o.model_copy(update={"subtasks": tuple(s.model_copy(update=more) for s in o.subtasks)})
        for o in graph.operators
    )
    graph = graph.model_copy(update={"operators": operators})
    return Reading(at_ms, job.overview(), graph, job.checkpoints())


def test_a_rate_is_what_happened_between_two_readings():
    """U2: all subtasks of an operator together, by the second."""
    first, *_ = paces(reading(10_000), reading(12_000, rows=5_000, busy_ms=1_000))

    assert (first.rows_in, first.rows_out, first.busy) == (5_000, 5_000, 0.5)


def test_after_a_restart_no_rate_is_negative():
    """U2: counts begin anew with a launch."""
    first, *_ = paces(reading(10_000, rows=5_000), reading(12_000))

    assert (first.rows_in, first.busy) == (0, 0)


def test_the_lag_is_that_of_the_slowest_subtask_that_has_event_time():
    """D4: a subtask without a watermark says nothing about it."""
    first, *_ = paces(reading(10_000), reading(12_000))

    assert first.lag_ms == 7_000


def test_the_headline_says_what_matters_most():
    """U3: status, checkpoint, failures, restarts."""
    assert headline(reading(0)) == (
        "orders: RUNNING · checkpoint 7 in 250 ms, 4.0 KiB · 1 failed · 3 restarts"
    )
    assert "no checkpoint yet" in headline(reading(0, job=FakeJobView(history=())))


def test_the_line_and_the_table_have_every_operator():
    """U3: with its rate; the table also says who is back-pressured."""
    readings = reading(10_000), reading(11_000, rows=5_000)
    page = io.StringIO()
    Console(file=page, width=120).print(table(*readings))

    assert "the words 10.0 k/s · the sums 10.0 k/s" in line(*readings)
    assert "the words back-pressured" in page.getvalue()
    assert "6.0 s" in page.getvalue()


def test_figures_are_rounded_with_a_unit():
    """U3: a person reads them at a glance."""
    assert [number_format.size(n) for n in (0, 1_023, 1_536, 5 << 20, 3 << 50)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 MiB",
        "3072.0 TiB",
    ]
    assert [number_format.count(n) for n in (7, 12_345, 2_500_000)] == ["7", "12.3 k", "2.5 M"]
    assert [number_format.duration(ms) for ms in (12, 1_500, 90_000, 5_400_000)] == [
        "12 ms",
        "1.5 s",
        "1.5 min",
        "1.5 h",
    ]
