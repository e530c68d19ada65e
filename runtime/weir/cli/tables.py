"""Tables of jobs and checkpoints, for a terminal."""

from collections.abc import Iterable
from datetime import datetime

from rich.table import Table

from weir.cli import figures
from weir.cli.client import Client
from weir.errors import WeirError
from weir.rest.checkpoints import Checkpoint, CheckpointStatistics, CheckpointStatus
from weir.rest.endpoints import Endpoint

COLOURS = {
    CheckpointStatus.COMPLETED: "green",
    CheckpointStatus.FAILED: "red",
    CheckpointStatus.IN_PROGRESS: "yellow",
}


def of_jobs(endpoints: Iterable[Endpoint]) -> Table:
    table = Table("job", "status", "checkpoint", "restarts", "pid", "url")
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


def of_checkpoints(statistics: CheckpointStatistics) -> Table:
    table = Table(title=_counted(statistics), title_justify="left", title_style="")
    for heading in ("id", "type", "status", "triggered", "took", "size", "acks"):
        table.add_column(heading, no_wrap=True)
    table.add_column("where, or why not", overflow="fold")
    for checkpoint in statistics.history:
        table.add_row(*_checkpoint(checkpoint))
    return table


def _counted(statistics: CheckpointStatistics) -> str:
    counts = statistics.counts
    text = f"{counts.completed} completed, {counts.failed} failed, {counts.in_progress} in progress"
    restored = statistics.latest.restored
    return f"{text}; restored from {restored.external_path}" if restored else text


def _checkpoint(checkpoint: Checkpoint) -> tuple[str, ...]:
    colour = COLOURS[checkpoint.status]
    triggered = datetime.fromtimestamp(checkpoint.trigger_timestamp / 1_000).astimezone()
    return (
        str(checkpoint.id),
        checkpoint.checkpoint_type,
        f"[{colour}]{checkpoint.status}[/]",
        triggered.strftime("%H:%M:%S"),
        figures.duration(checkpoint.end_to_end_duration),
        figures.size(checkpoint.state_size),
        f"{checkpoint.num_acknowledged_subtasks}/{checkpoint.num_subtasks}",
        checkpoint.external_path or checkpoint.failure_message or "",
    )
