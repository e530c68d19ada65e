"""Measures jobs on this machine and prints one table.

Every row is a run in a process of its own. A figure means little alone and much beside another of
the same run: with checkpoints beside without, Weir beside Structured Streaming.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

app = typer.Typer(add_completion=False, help=__doc__)
console = Console(highlight=False)

JOB = Path(__file__).with_name("keyed_job.py")
SLOW = Path(__file__).with_name("backpressure_job.py")
CHANGING = Path(__file__).with_name("incremental_job.py")
PEER = Path(__file__).with_name("structured_streaming.py")


@dataclass(frozen=True)
class Run:
    """One row of the table."""

    label: str
    arguments: tuple[str, ...]
    script: Path = JOB


SUM = ("--kind", "sum", "--keys")
PROCESSOR = ("--kind", "processor", "--keys")
EVERY_SECOND = ("--interval", "1 s")

KEYED = (
    Run("sum, 100 k keys", (*SUM, "100000")),
    Run("sum, 100 k keys, checkpoints", (*SUM, "100000", *EVERY_SECOND)),
    Run("sum, 1 M keys, checkpoints", (*SUM, "1000000", *EVERY_SECOND)),
    Run("sum, 10 M keys", (*SUM, "10000000", "--warm-up", "30")),
    Run("sum, 10 M keys, checkpoints", (*SUM, "10000000", "--warm-up", "30", *EVERY_SECOND)),
    Run("sum, 500 k keys, slots killed", (*SUM, "500000", *EVERY_SECOND, "--kill")),
    Run("processor, 100 k keys", (*PROCESSOR, "100000")),
    Run("processor, 100 k keys, checkpoints", (*PROCESSOR, "100000", *EVERY_SECOND)),
    Run("Structured Streaming, sum, 100 k keys", ("--keys", "100000"), PEER),
)


@app.callback()
def root() -> None:
    """Measure on a quiet machine; nothing else should run."""


@app.command()
def keyed(only: str = typer.Option("", help="Only the rows whose label has this in it.")) -> None:
    """Keyed sums and a Python processor: throughput, checkpoints, recovery."""
    table = Table("run", "rows/s", "checkpoints", "duration", "sync p99", "MiB", "recovery")
    for run in KEYED:
        if only in run.label:
            with console.status(run.label):
                figures = _figures(run)
            table.add_row(run.label, *_cells(figures))
    console.print(table)


@app.command()
def backpressure() -> None:
    """A slow last step: how long checkpoints take when barriers wait, and when they overtake."""
    table = Table("a call takes", "aligned", "longest", "unaligned", "longest", "in flight")
    for call_ms in (20, 50, 100, 200):
        slow = ("--call-ms", str(call_ms))
        with console.status(f"{call_ms} ms a call"):
            waits = _figures(Run("aligned", slow, SLOW))
            overtakes = _figures(Run("unaligned", (*slow, "--unaligned"), SLOW))
        table.add_row(
            f"{call_ms} ms",
            f"{waits['duration_ms']} ms",
            f"{waits['longest_ms']} ms",
            f"{overtakes['duration_ms']} ms",
            f"{overtakes['longest_ms']} ms",
            f"{overtakes['bytes']} bytes",
        )
    console.print(table)


@app.command()
def incremental() -> None:
    """One per cent of a million keys changes between checkpoints: what goes up for each."""
    table = Table("checkpoints", "duration", "state", "put up for each")
    for label, arguments in (("whole", ()), ("incremental", ("--incremental",))):
        with console.status(label):
            figures = _figures(Run(label, arguments, CHANGING))
        table.add_row(
            label,
            f"{figures['duration_ms']} ms",
            f"{figures['state_bytes']:,} bytes",
            f"{figures['written_bytes']:,} bytes",
        )
    console.print(table)


def _figures(run: Run) -> dict[str, object]:
    command = [sys.executable, str(run.script), *run.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        console.print(done.stderr[-2000:])
        raise typer.Exit(1)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(figures, dict), "a run prints its figures last"
    return figures


def _cells(figures: dict[str, object]) -> tuple[str, ...]:
    def shown(name: str, unit: str = "") -> str:
        return f"{figures[name]}{unit}" if name in figures else ""

    return (
        f"{figures['rows_per_second']:,.0f}",
        shown("checkpoints"),
        shown("duration_ms", " ms"),
        shown("sync_p99_ms", " ms"),
        shown("memory_mib"),
        shown("recovery_s", " s"),
    )


if __name__ == "__main__":
    app()
