"""Measures jobs on this machine and prints one table.

Every row is a run in a separate process. A figure means little alone and much beside another of
the same run: with checkpoints beside without, Weir beside Structured Streaming.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table

from seaweed import seaweed

app = typer.Typer(add_completion=False, help=__doc__)
console = Console(highlight=False)

JOB = Path(__file__).with_name("keyed_job.py")
SLOW = Path(__file__).with_name("backpressure_job.py")
LATENCY = Path(__file__).with_name("latency_job.py")
CHANGING = Path(__file__).with_name("incremental_job.py")
LOGGED = Path(__file__).with_name("changelog_job.py")
RESTORED = Path(__file__).with_name("restore_job.py")
MANY = Path(__file__).with_name("many_jobs.py")
PEER = Path(__file__).with_name("structured_streaming.py")
PRETENDED = Path(__file__).parent.parent / "e2e" / "support"
"""Where the API server, the nodes and the drivers of ``many_jobs`` come from."""


@dataclass(frozen=True)
class Run:
    """One row of the table."""

    label: str
    arguments: tuple[str, ...]
    script: Path = JOB
    environment: dict[str, str] = field(default_factory=dict)


SUM = ("--kind", "sum", "--keys")
PROCESSOR = ("--kind", "processor", "--keys")
BLOCKS = "▁▂▃▄▅▆▇█"
BAR_MS = 100
"""So many milliseconds are one block of a bar."""

EVERY_SECOND = ("--interval", "1 s")
SLOTS = 2
BYTES_PER_SUM = 28
"""Of a key's sum in a snapshot: its key group, its key, the sum and the count."""
LEAST_MIB = 16
ROWS_A_SECOND = 200_000

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
            figures = _figures(run)
            table.add_row(run.label, *_cells(figures))
    console.print(table)


@app.command()
def state() -> None:
    """What checkpoints every second cost a large state: throughput kept, duration, its parts."""
    table = Table("run", "rows/s", "kept", "duration", "barriers wait", "upload", "sync p99")
    for kind, label in (
        ((*PROCESSOR, "100000"), "processor, 100 k keys"),
        ((*SUM, "10000000", "--warm-up", "30"), "sum, 10 M keys"),
    ):
        undisturbed = float(str(_figures(Run(label, kind))["rows_per_second"]))
        table.add_row(label, f"{undisturbed:,.0f}", "", "", "", "", "")
        for manner, option in (("whole", ()), ("incremental", ("--incremental",))):
            run = Run(f"{label}, {manner} checkpoints", (*kind, *EVERY_SECOND, *option))
            table.add_row(run.label, *_kept(_figures(run), undisturbed))
    console.print(table)


def _kept(figures: dict[str, object], undisturbed: float) -> tuple[str, ...]:
    """Throughput beside that of the run without checkpoints, and what a checkpoint consists of."""
    rows = float(str(figures["rows_per_second"]))
    parts = ("duration_ms", "start_delay_ms", "async_ms", "sync_p99_ms")
    shown = (f"{figures[part]} ms" if part in figures else "none completed" for part in parts)
    return (f"{rows:,.0f}", f"{rows / undisturbed:.0%}", *shown)


@app.command()
def rocksdb(
    keys: int = typer.Option(20_000_000, help="How many keys the sums have."),
    minutes: float = typer.Option(1.0, help="How long to watch each run."),
) -> None:
    """Sums on disk, with memory for a quarter of them: throughput, checkpoints, memory."""
    table = Table("run", "rows/s", "duration", "sync p99", "state", "uploaded", "MiB", "growth")
    budget = f"{max(keys * BYTES_PER_SUM // 4 // SLOTS >> 20, LEAST_MIB)} MiB"
    # Keys are drawn: after three times as many rows as keys, one in twenty is not there yet.
    filled = str(3 * keys / ROWS_A_SECOND)
    watch = ("--warm-up", filled, "--seconds", str(minutes * 60), "--rocksdb-memory", budget)
    for label, options in (
        (f"{keys:,} keys, {budget} a slot", ()),
        ("checkpoints", ("--interval", "10 s")),
        ("incremental checkpoints", ("--interval", "10 s", "--incremental")),
    ):
        figures = _figures(Run(label, (*SUM, str(keys), *watch, *options)))
        first, last = (int(str(figures[n])) for n in ("memory_at_first_mib", "memory_mib"))
        sizes = (
            f"{float(str(figures[name])) / 1e6:,.0f} MB" if name in figures else ""
            for name in ("bytes", "written_bytes")
        )
        times = (
            f"{figures[name]} ms" if name in figures else ""
            for name in ("duration_ms", "sync_p99_ms")
        )
        rows, growth = f"{figures['rows_per_second']:,.0f}", f"{(last - first) / first:+.1%}"
        table.add_row(label, rows, *times, *sizes, str(last), growth)
    console.print(table)


@app.command()
def memory(minutes: float = typer.Option(10.0, help="How long to watch.")) -> None:
    """A keyed sum with checkpoints, for long: whether its slots' memory grows."""
    table = Table("run", "rows/s", "checkpoints", "MiB at first", "MiB at the end", "growth")
    watch = ("--warm-up", "60", "--seconds", str(minutes * 60))
    for kind, label in ((SUM, "sum, 1 M keys"), (PROCESSOR, "processor, 1 M keys")):
        figures = _figures(Run(label, (*kind, "1000000", *EVERY_SECOND, *watch)))
        first, last = (int(str(figures[n])) for n in ("memory_at_first_mib", "memory_mib"))
        rows, taken = f"{figures['rows_per_second']:,.0f}", str(figures["checkpoints"])
        growth = f"{(last - first) / first:+.2%}"
        table.add_row(label, rows, taken, str(first), str(last), growth)
    console.print(table)


@app.command()
def latency() -> None:
    """How long rows take through a keyed sum, by rate and checkpoint interval, over time."""
    table = Table("rows/s", "interval", "p50", "p99", "max", "longest in each half second")
    for rate in (1_000, 10_000, 100_000):
        for interval in ("500 ms", "1 s", "10 s"):
            wanted = ("--rate", str(rate), "--interval", interval)
            figures = _figures(Run(f"{rate:,} rows/s, {interval}", wanted, LATENCY))
            times = (f"{figures[name]} ms" for name in ("p50_ms", "p99_ms", "max_ms"))
            table.add_row(f"{rate:,}", interval, *times, _latency_curve(figures))
    console.print(table)
    console.print("Underlined: a checkpoint began. A full block is 100 ms or more.")


def _latency_curve(figures: dict[str, object]) -> str:
    longest, checkpoints = figures["curve_ms"], figures["checkpoints"]
    assert isinstance(longest, list), "the run prints lists"
    assert isinstance(checkpoints, list), "the run prints lists"
    marks = [BLOCKS[min(int(ms * len(BLOCKS) / 100), len(BLOCKS) - 1)] for ms in longest]
    return "".join(
        f"[underline]{mark}[/underline]" if number in checkpoints else mark
        for number, mark in enumerate(marks)
    )


@app.command()
def backpressure() -> None:
    """A slow last step: how long checkpoints take when barriers wait, and when they overtake."""
    table = Table("a call takes", "barriers", "median", "longest", "in flight", "")
    for call_ms in (20, 50, 100, 200):
        for manner, option in (("aligned", ()), ("unaligned", ("--unaligned",))):
            arguments = ("--call-ms", str(call_ms), *option)
            figures = _figures(Run(f"{call_ms} ms a call, {manner}", arguments, SLOW))
            table.add_row(f"{call_ms} ms", manner, *_curve(figures))
    console.print(table)


def _curve(figures: dict[str, object]) -> tuple[str, str, str, str]:
    """One point of a curve, as a bar; a run in which no checkpoint completed has none."""
    if figures["duration_ms"] is None:
        return "none completed", "", "", ""
    median, longest, size = (float(str(figures[n])) for n in ("duration_ms", "longest_ms", "bytes"))
    bar = "█" * max(round(median / BAR_MS), 1)
    return f"{median:,.0f} ms", f"{longest:,.0f} ms", f"{size / 1e6:.1f} MB", bar


@app.command()
def incremental() -> None:
    """One per cent of a million keys changes between checkpoints: what goes up for each."""
    table = Table("checkpoints", "duration", "state", "put up for each")
    for label, arguments in (("whole", ()), ("incremental", ("--incremental",))):
        figures = _figures(Run(label, arguments, CHANGING))
        table.add_row(
            label,
            f"{figures['duration_ms']} ms",
            f"{figures['state_bytes']:,} bytes",
            f"{figures['written_bytes']:,} bytes",
        )
    console.print(table)


@app.command()
def changelog(
    megabytes: int = typer.Option(40, help="How much state the job has."),
    rate: int = typer.Option(20_000, help="How many rows change it in a second."),
    seconds: float = typer.Option(30.0, help="How long each run is measured."),
) -> None:
    """Checkpoints on S3 every 200 ms, with and without a changelog: how long they take."""
    table = Table("checkpoints", "number", "state", "p50", "p99")
    with tempfile.TemporaryDirectory() as directory, seaweed(Path(directory)) as s3:
        for label, logged in (("whole", ()), ("changelog", ("--changelog",))):
            wanted = ("--megabytes", str(megabytes), "--rate", str(rate), "--seconds", str(seconds))
            storage = ("--storage", f"s3://{s3.bucket}/{label}")
            run = Run(label, (*storage, *wanted, *logged), LOGGED, s3.environment())
            figures = _figures(run)
            table.add_row(
                label,
                str(figures["checkpoints"]),
                f"{figures['state_bytes']:,} bytes",
                f"{figures['p50_ms']} ms",
                f"{figures['p99_ms']} ms",
            )
    console.print(table)


@app.command()
def restore(
    gigabytes: float = typer.Option(1.0, help="How much state the job has."),
    times: int = typer.Option(3, help="How often a slot is killed; the medians are shown."),
) -> None:
    """A slot is lost: how long its job takes to restore from S3, and from the local disk."""
    table = Table("state is read from", "bytes", "restore", "MB/s", "since the kill")
    measured: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory, seaweed(Path(directory)) as s3:
        for label, local in (("S3", ()), ("local copies", ("--local",))):
            wanted = ("--megabytes", str(gigabytes * 1000), "--times", str(times), *local)
            storage = f"s3://{s3.bucket}/{label.replace(' ', '-')}"
            run = Run(label, ("--storage", storage, *wanted), RESTORED, s3.environment())
            figures = _figures(run)
            size, seconds = (float(str(figures[name])) for name in ("bytes", "restore_s"))
            measured[label] = seconds
            table.add_row(
                label,
                f"{size:,.0f}",
                f"{seconds} s",
                f"{size / seconds / 1e6:,.0f}",
                f"{figures['recovery_s']} s",
            )
    console.print(table)
    ratio = measured["S3"] / measured["local copies"]
    console.print(f"Local copies restore {ratio:.1f} times as fast.")


@app.command()
def operator(
    jobs: int = typer.Option(1_000, help="How many jobs are made as fast as possible."),
    more: int = typer.Option(100, help="How many more are made at a steady pace."),
) -> None:
    """The operator on one core: jobs a minute, how soon a pod stands, how late a status is."""
    searched = os.pathsep.join((os.environ["PYTHONPATH"], str(PRETENDED)))
    wanted = ("--jobs", str(jobs), "--more", str(more))
    figures = _figures(Run("the operator", wanted, MANY, {"PYTHONPATH": searched}))
    table = Table("figure", "measured", "goal")
    table.add_row("jobs a minute, in a rush", str(figures["jobs_a_minute"]), "310 or more")
    table.add_row("until all run and it rests", f"{figures['settled_s']} s more", "")
    table.add_row("processor time a job", f"{figures['processor_ms_a_job']} ms", "")
    table.add_row("job to pod, p50", f"{figures['pod_p50_s']} s", "")
    table.add_row("job to pod, p99", f"{figures['pod_p99_s']} s", "under 2 s")
    table.add_row("checkpoint to status, p50", f"{figures['lag_p50_s']} s", "")
    table.add_row("checkpoint to status, p99", f"{figures['lag_p99_s']} s", "under 2 s")
    table.add_row("share of the core, jobs running", str(figures["processor_share"]), "")
    table.add_row(f"memory with {figures['jobs']} jobs", f"{figures['memory_mib']} MiB", "")
    table.add_row("memory at most", f"{figures['most_memory_mib']} MiB", "under 200 MB")
    console.print(table)


def _figures(run: Run) -> dict[str, object]:
    """The last line that a run prints; those before it show the progress."""
    command = [sys.executable, str(run.script), *run.arguments]
    last = ""
    with (
        tempfile.TemporaryFile("w+") as problems,
        console.status(run.label) as status,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=problems,
            text=True,
            env={**os.environ, **run.environment},
        ) as process,
    ):
        assert process.stdout is not None, "it is a pipe"
        for line in process.stdout:
            last = line
            _show(run, line.strip(), status)
        if process.wait():
            problems.seek(0)
            console.print(problems.read()[-2000:])
            raise typer.Exit(1)
    figures = json.loads(last)
    assert isinstance(figures, dict), "a run prints its figures last"
    return figures


def _show(run: Run, line: str, status: Status) -> None:
    """On a terminal one line that changes; elsewhere a line each."""
    if line.startswith("{"):
        return
    if console.is_terminal:
        status.update(f"{run.label}: {line}")
    else:
        console.print(f"{run.label}: {line}")


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
