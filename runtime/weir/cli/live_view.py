"""Shows the jobs of this process while they run, beside the user's script.

On a terminal it updates a table in place; elsewhere it writes a line every few seconds. It does not
show a job that does not answer.
"""

import os
import threading
import time
from typing import Self

from rich.console import Console, Group
from rich.live import Live

from weir.cli.client import Client
from weir.cli.progress_table import Reading, line, table
from weir.errors import WeirError
from weir.rest import job_registry
from weir.rest.job_registry import Endpoint

POLL_SECONDS = 0.5
LINE_SECONDS = 5.0


def own_jobs() -> list[Endpoint]:
    """The jobs that run in this process."""
    return [endpoint for endpoint in job_registry.running() if endpoint.pid == os.getpid()]


class LiveView:
    """A thread that polls the jobs and shows them until it is closed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_over = threading.Event()
        self._readings: dict[str, tuple[Reading, Reading]] = {}
        show = self._show_table if console.is_terminal else self._show_lines
        self._thread = threading.Thread(target=show, name="weir-progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _show_table(self) -> None:
        with Live(console=self._console, auto_refresh=False) as live:
            while not self._is_over.wait(POLL_SECONDS):
                self._look()
                live.update(Group(*(table(*r) for r in self._readings.values())), refresh=True)

    def _show_lines(self) -> None:
        due = 0.0
        while not self._is_over.wait(POLL_SECONDS):
            if time.monotonic() < due:
                continue
            self._look()
            for readings in self._readings.values():
                self._console.print(line(*readings), soft_wrap=True, highlight=False)
                due = time.monotonic() + LINE_SECONDS

    def _look(self) -> None:
        """Poll the jobs; one that does not answer is dropped and starts again when it answers."""
        known, self._readings = self._readings, {}
        for endpoint in own_jobs():
            reading = _read(Client(endpoint.url, endpoint.token, endpoint.authority))
            if reading is not None:
                _, before = known.get(endpoint.job, (reading, reading))
                self._readings[endpoint.job] = before, reading


def _read(client: Client) -> Reading | None:
    try:
        return Reading(
            time.time_ns() // 1_000_000, client.overview(), client.graph(), client.checkpoints()
        )
    except WeirError:
        return None
