"""Runs one job through failures, a savepoint and a restore, and checks its output.

A keyed, stateful stream runs on embedded Spark with a checkpoint every second. While it runs, a
slot is killed, then the driver, both by SIGKILL; the job is stopped with a savepoint and continues
from it. The check reads the output files alone.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from demo_job import DemoFailed, DemoJob
from output_check import judge
from weir.testing import generator

ROWS = 1_000_000
ROWS_PER_SECOND = 20_000
KEYS = 5_000

console = Console(highlight=False)


def main() -> int:
    directory = Path(tempfile.mkdtemp(prefix="weir-demo-"))
    job = DemoJob(directory, ROWS, ROWS_PER_SECOND)
    try:
        return _run(job)
    except DemoFailed as end:
        console.print(f"\n[bold red]{end}[/]")
        return 1
    finally:
        job.end()


def _run(job: DemoJob) -> int:
    began = time.monotonic()
    _introduce()
    _start(job)
    _kill_a_slot(job)
    _kill_the_driver(job)
    savepoint = _stop_with_a_savepoint(job)
    _continue_from(job, savepoint)
    return _check_output(job, time.monotonic() - began)


def _introduce() -> None:
    console.print(
        f"\n[bold]A running sum for each of {KEYS:,} keys, {ROWS:,} rows, exactly once.[/]\n"
        "  generator ──hash by key──▶ StatefulProcessor ──▶ Parquet files\n"
        "  two slots on embedded Spark, a checkpoint every second, state in files\n"
    )


def _say(what: str, why: str = "") -> None:
    console.print(f"[cyan]●[/] {what}")
    if why:
        console.print(f"  [dim]{why}[/]")


def _start(job: DemoJob) -> None:
    _say("The job starts.", "Its driver runs Spark; two Spark tasks become its slots.")
    with console.status("waiting for the first checkpoints"):
        job.start()
        newest = job.await_checkpoints(3)
    _say(f"Checkpoint {newest} is complete, and the stream never paused for it.")


def _kill_a_slot(job: DemoJob) -> None:
    before = set(job.slots())
    victim = job.kill_slot()
    killed = time.monotonic()
    _say(
        f"kill -9 {victim}: one of the two slots is gone, and half of the state with it.",
        "Spark starts its task again; the other slot is only reset, and both restore the newest"
        " checkpoint.",
    )
    with console.status("waiting for the job to continue"):
        job.until(lambda: len(job.slots()) == len(before), "a new slot")
        newest = job.await_checkpoints(1)
    survivors = before & set(job.slots())
    _say(
        f"Checkpoint {newest} is complete {time.monotonic() - killed:.1f} s later;"
        f" slot {', '.join(map(str, sorted(survivors)))} was not restarted."
    )


def _kill_the_driver(job: DemoJob) -> None:
    victim = job.kill_driver()
    killed = time.monotonic()
    _say(
        f"kill -9 {victim}: the driver is gone, and Spark with it.",
        "A new driver takes the next number in the job's log. From then on the old one could not"
        " complete a checkpoint, even if it were still alive.",
    )
    with console.status("waiting for the new driver, most of it for Spark to start"):
        job.start()
        newest = job.await_checkpoints(2)
    _say(f"Checkpoint {newest} is complete {time.monotonic() - killed:.1f} s later.")


def _stop_with_a_savepoint(job: DemoJob) -> str:
    client = job.client
    if client is None:
        raise DemoFailed(f"The job's API is gone; see {job.log}.")
    target = f"file://{job.directory}/savepoints"
    with console.status("taking a savepoint and stopping with it"):
        state = client.order("stop", {"targetDirectory": target}, wait=30)
        job.wait()
    if state.location is None:
        raise DemoFailed(f"The savepoint was not taken: {state}; see {job.log}.")
    _say(
        "The job is stopped with a savepoint.",
        f"{state.location} holds all of its state and belongs to you.",
    )
    return state.location


def _continue_from(job: DemoJob, savepoint: str) -> None:
    with console.status("continuing from the savepoint to the end of the rows"):
        job.start(savepoint)
        job.until(lambda: job.newest_checkpoint() > 0, "the restored job")
        _say("The job continues from its savepoint, to the end of its rows.")
        job.wait()
    _say("The job has finished, and its last transaction is committed.")


def _check_output(job: DemoJob, seconds: float) -> int:
    found = judge(job.output, generator(splits=2, keys=KEYS, rows=ROWS))
    colour = "green" if found.is_exactly_once else "red"
    console.print(
        "\nEvery output row names its input row and its key's running sum. All of them, against a"
        " sequential recomputation:"
    )
    console.print(f"[bold {colour}]exactly-once: {found}[/]   ({seconds:.0f} s)\n")
    if not found.is_exactly_once:
        console.print(f"The files of the job are in {job.directory}.")
        return 1
    shutil.rmtree(job.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
