"""What the command `weir` does to jobs that run already."""

import os

import pytest
from typer.testing import CliRunner

from fake_job_view import TOKEN, FakeJobView, a_checkpoint, completed, failed, served
from throwaway_certificates import a_certificate
from weir import __version__
from weir.cli.__main__ import app
from weir.errors import JobRejected
from weir.rest import job_registry
from weir.rest.checkpoint_statistics import CheckpointStatus
from weir.rest.commands import Cancel, Stop, TakeSavepoint
from weir.rest.job_registry import Endpoint
from weir.rest.server import ListenAddress

AT_WORK = {
    "status": CheckpointStatus.IN_PROGRESS,
    "external_path": None,
    "num_acknowledged_subtasks": 1,
}


@pytest.fixture(autouse=True)
def _terminal(tmp_path, monkeypatch):
    """A user of the test's own, with a wide terminal."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("WEIR_URL", raising=False)
    monkeypatch.delenv("WEIR_TOKEN", raising=False)


def register(name, url, authority=""):
    pid = os.getpid()
    job_registry.write(Endpoint(job=name, url=url, token=TOKEN, pid=pid, authority=authority))


def test_the_version_is_shown():
    """U2."""
    result = CliRunner().invoke(app, ["--version"])

    assert (result.exit_code, result.stdout) == (0, f"weir {__version__}\n")


@pytest.fixture
def job():
    job = FakeJobView(outcome=completed("s3://b/savepoint-8"))
    with served(job) as server:
        register(job.name, server.url)
        yield job


def weir(*words):
    return CliRunner().invoke(app, list(words))


def test_a_savepoint_of_the_only_job_needs_no_name(job):
    """U2: its place, and nothing else, is on standard output."""
    result = weir("savepoint")

    assert (result.exit_code, result.stdout) == (0, "s3://b/savepoint-8\n")
    assert job.orders == [TakeSavepoint()]


def test_a_job_that_speaks_https_is_reached_by_its_own_authority(tmp_path):
    """X1 U2: its file says which; without that it is not believed."""
    tls = a_certificate(tmp_path, "job")
    job = FakeJobView(outcome=completed("s3://b/savepoint-8"))
    with served(job, ListenAddress(tls=tls)) as server:
        register(job.name, server.url, str(tls.authority))
        assert weir("savepoint").stdout == "s3://b/savepoint-8\n"
        register(job.name, server.url)
        assert "CERTIFICATE_VERIFY_FAILED" in weir("savepoint").stderr


def test_a_savepoint_may_go_to_a_path_of_this_machine(job, tmp_path, monkeypatch):
    """U2: a path is written as one and sent as a URL."""
    monkeypatch.chdir(tmp_path)
    weir("savepoint", "orders", "--to", "backups")

    assert job.orders == [TakeSavepoint(f"file://{tmp_path}/backups")]


def test_a_stop_prints_where_its_savepoint_is(job):
    """C11: without drain unless it is asked for."""
    assert weir("stop", "--to", "s3://b/d").stdout == "s3://b/savepoint-8\n"
    weir("stop", "--drain")

    assert job.orders == [Stop("s3://b/d"), Stop(drain=True)]


def test_a_cancel_says_that_it_is_done(job):
    """U2: nothing on standard output, for nothing was made."""
    result = weir("cancel")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "cancelled" in result.stderr
    assert job.orders == [Cancel()]


def test_progress_is_shown_while_a_savepoint_is_taken(job):
    """U3: long work says how far it has come."""
    job.outcome = None
    job.history = (a_checkpoint(10).model_copy(update=AT_WORK), *job.history)
    asked = job.checkpoints

    def once_more():
        job.outcome = completed("s3://b/savepoint-10")
        return asked()

    job.checkpoints = once_more
    result = weir("savepoint")

    assert "orders: taking a savepoint, checkpoint 10: 1 of 2 subtasks are done" in result.stderr
    assert result.stdout == "s3://b/savepoint-10\n"


def test_a_request_that_came_to_nothing_says_why(job):
    """U3: reason, message, remedy."""
    job.outcome = failed("CHECKPOINT_EXPIRED", "sums-1 was still aligning")
    result = weir("savepoint")

    assert result.exit_code == 1
    assert "failed with CHECKPOINT_EXPIRED.\nCause: sums-1 was still aligning." in result.stderr
    assert "Remedy: " in result.stderr


def test_a_refused_request_prints_the_message_of_the_job(job):
    """U3: problem, cause and remedy on a line each, and no trace."""
    job.refusal = JobRejected("job orders accepts no requests", "it is finished", "start it again")
    result = weir("stop")

    assert result.exit_code == 1
    assert result.stderr.splitlines()[-3:] == [
        "Error: job orders accepts no requests.",
        "Cause: it is finished.",
        "Remedy: start it again.",
    ]


@pytest.mark.usefixtures("job")
def test_checkpoints_are_a_table_with_the_newest_of_each_sort_below(monkeypatch):
    """U2: it fits a narrow terminal, and a place is never broken in two."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = weir("checkpoints").stdout.splitlines()

    (seventh,) = [line.split() for line in lines if line.split()[:1] == ["7"]]
    assert seventh[1:2] + seventh[3:] == [
        *("CHECKPOINT", "250", "ms", "4.0", "KiB", "128", "B", "2/2", "COMPLETED")
    ]
    assert "latest checkpoint: file:///data/orders/chk-7" in lines
    assert any(line.endswith("CHECKPOINT_EXPIRED") for line in map(str.rstrip, lines))


@pytest.mark.usefixtures("job")
def test_jobs_are_listed_with_how_they_stand():
    """U2: also one that does not answer."""
    register("broken", "http://127.0.0.1:1")
    rows = {line.split()[0]: line for line in weir("jobs").stdout.splitlines() if "http" in line}

    assert "RUNNING" in rows["orders"]
    assert "does not answer" in rows["broken"]


@pytest.mark.usefixtures("job")
def test_the_token_is_never_printed():
    """X4: not by any command."""
    words = ("jobs", "checkpoints", "savepoint", "cancel")

    assert not [word for word in words if TOKEN in weir(word).output]


# -- which job


def test_without_a_job_the_message_says_how_to_start_one():
    """U3: thing, cause, remedy."""
    for words in (["savepoint"], ["cancel", "orders"]):
        result = weir(*words)
        assert result.exit_code == 1
        assert "runs on this machine" in result.stderr
        assert "weir run" in result.stderr
    assert "No job" in weir("jobs").stderr


def test_several_jobs_are_listed_and_none_is_touched(job):
    """U3: which one is meant must be said."""
    register("clicks", "http://127.0.0.1:1")
    result = weir("cancel")

    assert result.exit_code == 1
    assert "2 jobs run on this machine: clicks, orders" in result.stderr
    assert job.orders == []


def test_a_wrong_name_is_answered_with_the_right_ones(job):
    """U3: the remedy is on the screen."""
    result = weir("cancel", "odrers")

    assert "no job odrers" in result.stderr
    assert "these do: orders" in result.stderr
    assert job.orders == []


def test_a_job_elsewhere_is_reached_by_its_address_and_token(monkeypatch):
    """U2: no file on this machine is needed."""
    job = FakeJobView(outcome=completed("s3://b/savepoint-8"))
    with served(job) as server:
        assert weir("savepoint", "--url", server.url, "--token", TOKEN).exit_code == 0
        monkeypatch.setenv("WEIR_TOKEN", TOKEN)
        assert weir("savepoint", "--url", server.url).exit_code == 0

    assert job.orders == [TakeSavepoint(), TakeSavepoint()]


def test_a_wrong_token_is_refused_with_a_remedy():
    """X1, U3: and the order is not given."""
    job = FakeJobView()
    with served(job) as server:
        result = weir("cancel", "--url", server.url, "--token", "wrong")

    assert result.exit_code == 1
    assert "Remedy: send the header Authorization" in result.stderr
    assert job.orders == []


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://127.0.0.1:1", "no job answers at http://127.0.0.1:1"),
        ("orders:8081", "orders:8081 is not the address"),
    ],
)
def test_an_address_where_no_job_is_says_so(url, named):
    """U3: thing, cause, remedy."""
    result = weir("savepoint", "--url", url)

    assert result.exit_code == 1
    assert named in result.stderr


@pytest.mark.parametrize("command", ["run", "savepoint", "stop", "cancel", "checkpoints"])
def test_every_command_teaches_by_an_example(command):
    """U2: the help is enough to begin with."""
    assert f"weir {command} " in weir(command, "--help").output
