"""Tables of jobs and checkpoints, narrow enough for any terminal."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.table import Table

from weir.cli import number_format
from weir.cli.client import Client
from weir.errors import WeirError
from weir.rest.checkpoint_statistics import Checkpoint, CheckpointStatistics, CheckpointStatus
from weir.rest.job_registry import Endpoint

COLOURS = {
    CheckpointStatus.COMPLETED: "green",
    CheckpointStatus.FAILED: "red",
    CheckpointStatus.IN_PROGRESS: "yellow",
}


def of_jobs(endpoints: Iterable[Endpoint]) -> Table:
    table = Table("job", "status", "checkpoint", "restarts", "pid", box=SIMPLE_HEAD)
    table.add_column("url", overflow="fold")
    for endpoint in endpoints:
        table.add_row(endpoint.job, *_job(endpoint), str(endpoint.pid), endpoint.url)
    return table


def _job(endpoint: Endpoint) -> tuple[str, str, str]:
    client = Client(endpoint.url, endpoint.token)
    try:
        overview, newest = client.overview(), client.checkpoints().latest.completed
    except WeirError:
        return "does not answer", "", ""
    return overview.status, str(newest.id) if newest else "none yet", str(overview.restarts)


def of_checkpoints(history: Iterable[Checkpoint]) -> Table:
    titles = ("id", "type", "started", "took", "size", "in flight", "acks", "status")
    table = Table(*titles, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for checkpoint in history:
        table.add_row(*_checkpoint(checkpoint))
    return table


def _checkpoint(checkpoint: Checkpoint) -> tuple[str, ...]:
    triggered = datetime.fromtimestamp(checkpoint.trigger_timestamp / 1_000, UTC).astimezone()
    reason, _, _ = (checkpoint.failure_message or "").partition(":")
    return (
        str(checkpoint.id),
        checkpoint.checkpoint_type,
        f"{triggered:%H:%M:%S}",
        number_format.duration(checkpoint.end_to_end_duration),
        number_format.size(checkpoint.state_size),
        number_format.size(checkpoint.persisted_data),
        f"{checkpoint.num_acknowledged_subtasks}/{checkpoint.num_subtasks}",
        f"[{COLOURS[checkpoint.status]}]{reason or checkpoint.status}[/]",
    )


def notable(statistics: CheckpointStatistics) -> Iterator[str]:
    """What one wants to copy from the screen: the newest of each sort, and where it is."""
    counts, latest = statistics.counts, statistics.latest
    yield f"{counts.completed} completed, {counts.failed} failed, {counts.in_progress} in progress"
    if latest.completed:
        yield f"latest checkpoint: {latest.completed.external_path}"
    if latest.savepoint:
        yield f"latest savepoint: {latest.savepoint.external_path}"
    if latest.failed:
        yield f"latest failure: checkpoint {latest.failed.id}, {latest.failed.failure_message}"
    if latest.restored:
        yield f"restored from: {latest.restored.external_path}"
