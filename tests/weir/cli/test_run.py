"""What `weir run` does with a user's script."""

import json
import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from weir.cli.__main__ import app

TELLS_ALL = """
import json, os, sys
given = {name: value for name, value in os.environ.items() if name.startswith("WEIR_")}
print(json.dumps({"name": __name__, "arguments": sys.argv[1:], "given": given}))
"""

SERVES = """
import os, threading
from fake_job_view import TOKEN, FakeJobView, served
from weir.rest import job_registry
from weir.rest.job_registry import Endpoint

job = FakeJobView()
with served(job) as server:
    endpoint = Endpoint(job=job.name, url=server.url, token=TOKEN, pid=os.getpid())
    job_registry.write(endpoint)
    print("serving", flush=True)
    job.ordered.wait()
    print(job.orders, flush=True)
    job_registry.remove(endpoint)
"""

HANGS = f"{SERVES}\n    threading.Event().wait()\n"


@pytest.fixture(autouse=True)
def _user(tmp_path, monkeypatch):
    """A user of the test's own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("WEIR_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "job.py"
        path.write_text(text)
        return str(path)

    return write


def run(*words):
    return CliRunner().invoke(app, ["run", *words])


def started(path):
    return subprocess.Popen(
        [sys.executable, "-m", "weir.cli", "run", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def read_until(stream, words):
    for line in stream:
        if words in line:
            return line
    pytest.fail(f"nothing said {words!r}")


def test_a_script_runs_as_python_would_run_it(script):
    """D5: as the main module, with its own arguments."""
    result = run(script(TELLS_ALL), "--input", "events/", "-v")
    given = json.loads(result.stdout)

    assert given == {"name": "__main__", "arguments": ["--input", "events/", "-v"], "given": {}}


def test_what_the_command_line_wishes_reaches_the_session(script, tmp_path, monkeypatch):
    """U2: by environment variables, before or after the script's name."""
    monkeypatch.chdir(tmp_path)
    words = ("--from", "backups/savepoint-1", "--claim", "--allow-non-restored-state")
    result = run("--slots", "3", script(TELLS_ALL), *words)

    assert json.loads(result.stdout)["given"] == {
        "WEIR_PARALLELISM": "3",
        "WEIR_FROM": f"file://{tmp_path}/backups/savepoint-1",
        "WEIR_CLAIM": "true",
        "WEIR_ALLOW_NON_RESTORED_STATE": "true",
    }


def test_nothing_of_a_run_stays_behind(script):
    """U2: neither variables nor arguments nor paths."""
    before = dict(os.environ), list(sys.argv), list(sys.path)
    run(script(TELLS_ALL), "--slots", "3", "more")

    assert (dict(os.environ), sys.argv, sys.path) == before


def test_a_script_finds_the_modules_beside_it(script, tmp_path):
    """D5: as `python job.py` does."""
    (tmp_path / "beside_the_job.py").write_text("ANSWER = 42")

    assert run(script("import beside_the_job as b; print(b.ANSWER)")).stdout == "42\n"


def test_the_scripts_own_exit_is_the_commands(script):
    """U2: a shell sees how it ended."""
    assert run(script("raise SystemExit(7)")).exit_code == 7


def test_a_refused_job_is_reported_without_a_stack_trace(script):
    """U3: problem, cause and remedy, a line each."""
    text = "from weir.errors import JobRejected\nraise JobRejected('no', 'why', '[yes]')"
    result = run(script(text))

    assert result.exit_code == 1
    assert result.stderr == "Error: no.\nCause: why.\nRemedy: [yes].\n"


def test_a_script_that_is_not_there_is_named():
    """U3: before anything starts."""
    result = run("nowhere.py")

    assert result.exit_code == 2
    assert "nowhere.py" in result.stderr


def test_without_a_terminal_a_line_tells_how_the_job_is_doing(script):
    """U3: status, rates, the last checkpoint, restarts; Ctrl-C cancels the job cleanly."""
    process = started(script(SERVES))
    line = read_until(process.stderr, "RUNNING")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)

    assert "checkpoint 7 in 250 ms, 4.0 KiB" in line
    assert "3 restarts" in line
    assert "Cancel()" in output
    assert "Cancelling orders" in errors
    assert process.returncode == 0


def test_the_second_interrupt_ends_a_job_that_does_not_end(script):
    """U2: the user need not look for the process."""
    process = started(script(HANGS))
    read_until(process.stdout, "serving")
    process.send_signal(signal.SIGINT)
    read_until(process.stderr, "Cancelling orders")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)

    assert process.returncode == -signal.SIGINT
