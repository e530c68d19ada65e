"""Sends a command to a job, waits until it has ended, and shows its progress meanwhile."""

from dataclasses import dataclass

from rich.console import Console

from weir.cli.client import Client
from weir.errors import JobRejected, Unavailable
from weir.rest.checkpoint_statistics import CheckpointStatus
from weir.rest.commands import RequestState, RequestStatus

POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ApiCommand:
    """A command: its path and body in the API, and its description for people."""

    path: str
    doing: str
    """As in "taking a savepoint"."""
    body: dict[str, object]


def send_and_wait(client: Client, command: ApiCommand, console: Console) -> RequestState | None:
    """The request when it has ended, or None if the job ended before it reported the outcome.

    Raises ``JobRejected`` with the reason if the request has failed.
    """
    doing = f"{client.overview().name}: {command.doing}"
    with console.status(doing) as status:
        shown = doing
        state = client.order(command.path, command.body, POLL_SECONDS)
        try:
            while state.status is RequestStatus.IN_PROGRESS:
                now = f"{doing}{_progress(client)}"
                status.update(now)
                if now != shown and not console.is_terminal:
                    console.print(now, soft_wrap=True, highlight=False)
                shown = now
                state = client.request(state.id, POLL_SECONDS)
        except Unavailable:
            return None
    if state.status is RequestStatus.FAILED:
        raise JobRejected(
            f"{doing} has failed with {state.reason}",
            state.message or "the job gives no details",
            "see with `weir checkpoints` how the last ones ended, then try again",
        )
    return state


def _progress(client: Client) -> str:
    """How many subtasks have acknowledged the checkpoint that is in progress."""
    pending = [
        checkpoint
        for checkpoint in client.checkpoints().history
        if checkpoint.status is CheckpointStatus.IN_PROGRESS
    ]
    if not pending:
        return ", waiting"
    newest = pending[0]
    done, of = newest.num_acknowledged_subtasks, newest.num_subtasks
    return f", checkpoint {newest.id}: {done} of {of} subtasks are done"
