"""Renders the progress of a running job as a table or as one line.

A rate is the difference of two readings. Counts start again with every launch, so after a restart a
rate is shown as zero and not as a negative number.
"""

from dataclasses import dataclass

from rich.table import Table

from weir.cli import number_format
from weir.rest.checkpoint_statistics import CheckpointStatistics
from weir.rest.job_overview import Graph, Operator, Overview


@dataclass(frozen=True, slots=True)
class Reading:
    """A job as its API showed it at one moment."""

    at_ms: int
    overview: Overview
    graph: Graph
    checkpoints: CheckpointStatistics


@dataclass(frozen=True, slots=True)
class Pace:
    """What one operator has done between two readings, by the second."""

    operator: Operator
    rows_in: float
    rows_out: float
    busy: float
    """The share of the time in which it was at work: 1 for every subtask that never rested."""
    lag_ms: int | None
    """How far its event time is behind the clock."""

    @property
    def is_back_pressured(self) -> bool:
        return any(subtask.is_back_pressured for subtask in self.operator.subtasks)


def paces(before: Reading, now: Reading) -> list[Pace]:
    old = {operator.id: operator for operator in before.graph.operators}
    elapsed = max(now.at_ms - before.at_ms, 1)
    return [_pace(old.get(o.id, o), o, now.at_ms, elapsed) for o in now.graph.operators]


def _pace(old: Operator, new: Operator, now_ms: int, elapsed_ms: int) -> Pace:
    then, today = _totals(old), _totals(new)
    rows_in, rows_out, busy = (max(t - o, 0) / elapsed_ms for o, t in zip(then, today, strict=True))
    times = [subtask.watermark for subtask in new.subtasks if subtask.watermark is not None]
    lag = max(now_ms - min(times), 0) if times else None
    return Pace(new, rows_in * 1_000, rows_out * 1_000, busy / new.parallelism, lag)


def _totals(operator: Operator) -> tuple[int, int, int]:
    subtasks = operator.subtasks
    return (
        sum(subtask.rows_in for subtask in subtasks),
        sum(subtask.rows_out for subtask in subtasks),
        sum(subtask.busy_ms for subtask in subtasks),
    )


def table(before: Reading, now: Reading) -> Table:
    shown = Table(title=headline(now), title_justify="left", title_style="", expand=False)
    shown.add_column("operator")
    for heading in ("rows/s in", "rows/s out", "busy", "watermark lag"):
        shown.add_column(heading, justify="right")
    for pace in paces(before, now):
        shown.add_row(
            pace.operator.name + (" [yellow]back-pressured[/]" if pace.is_back_pressured else ""),
            number_format.count(pace.rows_in),
            number_format.count(pace.rows_out),
            f"{pace.busy:.0%}",
            "–" if pace.lag_ms is None else number_format.duration(pace.lag_ms),
        )
    return shown


def line(before: Reading, now: Reading) -> str:
    rates = [
        f"{p.operator.name} {number_format.count(max(p.rows_in, p.rows_out))}/s"
        for p in paces(before, now)
    ]
    return " · ".join([headline(now), *rates])


def headline(now: Reading) -> str:
    overview, newest = now.overview, now.checkpoints.latest.completed
    parts = [f"{overview.name}: {overview.status}"]
    if overview.slots.missing:
        parts.append(f"waiting for {overview.slots.missing} slots")
    if newest is None:
        parts.append("no checkpoint yet")
    else:
        took = number_format.duration(newest.end_to_end_duration)
        parts.append(f"checkpoint {newest.id} in {took}, {number_format.size(newest.state_size)}")
    if now.checkpoints.counts.failed:
        parts.append(f"{now.checkpoints.counts.failed} failed")
    if overview.restarts:
        parts.append(f"{overview.restarts} restarts")
    return " · ".join(parts)
