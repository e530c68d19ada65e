"""Runs a user's script in this process as Python would, with the options of the command line.

Environment variables carry the options to the session, so that the script needs no code for them.
The first Ctrl-C cancels the script's jobs, the second ends the process.
"""

import os
import runpy
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from rich.console import Console

from weir.api.environment_variables import (
    WEIR_ALLOW_NON_RESTORED_STATE,
    WEIR_CLAIM,
    WEIR_FROM,
    WEIR_PARALLELISM,
    WEIR_RERUN,
    WEIR_TAKE_OVER,
)
from weir.cli.client import Client
from weir.cli.live_view import LiveView, own_jobs
from weir.errors import WeirError
from weir.rest.job_registry import Endpoint


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of the command line for a job; the script decides those that are not given."""

    slots: int | None = None
    start_from: str = ""
    claims: bool = False
    allows_non_restored_state: bool = False
    takes_over: bool = False
    reruns: bool = False

    @property
    def variables(self) -> dict[str, str]:
        given = {
            WEIR_PARALLELISM: str(self.slots or ""),
            WEIR_FROM: self.start_from,
            WEIR_CLAIM: "true" if self.claims else "",
            WEIR_ALLOW_NON_RESTORED_STATE: "true" if self.allows_non_restored_state else "",
            WEIR_TAKE_OVER: "true" if self.takes_over else "",
            WEIR_RERUN: "true" if self.reruns else "",
        }
        return {name: value for name, value in given.items() if value}


def run_script(script: Path, arguments: list[str], options: RunOptions, console: Console) -> None:
    with (
        as_python_would(script, arguments, options.variables),
        _interrupts(console),
        LiveView(console),
    ):
        runpy.run_path(str(script), run_name="__main__")


@contextmanager
def as_python_would(
    script: Path, arguments: list[str], variables: Mapping[str, str]
) -> Iterator[None]:
    """Set the arguments, path and environment of a script; the end of the block restores them."""
    argv, path, environment = sys.argv, list(sys.path), dict(os.environ)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    os.environ.update(variables)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
        os.environ.clear()
        os.environ.update(environment)


@contextmanager
def _interrupts(console: Console) -> Iterator[None]:
    """Handle SIGINT, which only the main thread can do."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, CancelThenKill(console))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class CancelThenKill:
    """Handler of Ctrl-C: cancels the jobs the first time, ends the process the second time."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __call__(self, number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, signal.SIG_DFL)
        cancelled = [endpoint.job for endpoint in own_jobs() if _cancel(endpoint)]
        if not cancelled:
            raise KeyboardInterrupt
        names = ", ".join(cancelled)
        self._console.print(f"Cancelling {names}. Ctrl-C again ends the process at once.")


def _cancel(endpoint: Endpoint) -> bool:
    """Whether the job has accepted the cancellation; a job that has ended refuses it."""
    try:
        Client(endpoint.url, endpoint.token, endpoint.authority).order("cancel", {})
    except WeirError:
        return False
    return True
