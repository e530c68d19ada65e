"""How a job is shown on a terminal while it runs."""

import io
import os
import threading

from rich.console import Console

from fake_job_view import TOKEN, FakeJobView, served
from weir.cli.live_view import LiveView, own_jobs
from weir.rest import job_registry
from weir.rest.job_registry import Endpoint


class Screen(io.StringIO):
    """Tells when it has shown some words."""

    def __init__(self, words):
        super().__init__()
        self._words = words
        self.has_shown = threading.Event()

    def write(self, text):
        if self._words in text:
            self.has_shown.set()
        return super().write(text)


def test_a_table_of_the_job_is_on_the_screen(tmp_path, monkeypatch):
    """U3: every operator of every job of this process."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    screen = Screen("the sums")
    with served(FakeJobView()) as server, LiveView(Console(file=screen, force_terminal=True)):
        job_registry.write(Endpoint(job="orders", url=server.url, token=TOKEN, pid=os.getpid()))
        assert screen.has_shown.wait(20)

    assert "orders: RUNNING" in screen.getvalue()


def test_jobs_of_other_processes_are_not_ours(tmp_path, monkeypatch):
    """U2: Ctrl-C cancels what this process runs and nothing else."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    job_registry.write(Endpoint(job="orders", url="http://h:1", token=TOKEN, pid=os.getppid()))

    assert job_registry.running()
    assert own_jobs() == []
