"""How a job on this machine is found by its file."""

import os
import subprocess

import pytest

from weir.rest import job_registry
from weir.rest.job_registry import Endpoint

SECRET = "a-secret"  # noqa: S105 - opens nothing


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def an_endpoint(job="orders", pid=None):
    return Endpoint(job=job, url="http://127.0.0.1:1", token=SECRET, pid=pid or os.getpid())


def pid_of_the_dead():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_running_job_is_found_by_name_and_in_the_list():
    """U2: no address to remember."""
    job_registry.write(an_endpoint())

    assert job_registry.find("orders") == an_endpoint()
    assert job_registry.running() == [an_endpoint()]


def test_only_the_owner_can_read_the_token():
    """X4: the file is its owner's alone, and so is the directory."""
    path = job_registry.write(an_endpoint())

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert SECRET not in repr(an_endpoint())


def test_a_job_whose_process_is_gone_is_forgotten():
    """U2: a reader removes the file that a crash has left."""
    path = job_registry.write(an_endpoint(pid=pid_of_the_dead()))

    assert job_registry.running() == []
    assert not path.exists()


def test_a_job_that_ends_removes_its_own_file_only():
    """U2: a newer run of the same name stays reachable."""
    old = an_endpoint(pid=pid_of_the_dead())
    job_registry.write(an_endpoint())
    job_registry.remove(old)
    assert job_registry.find("orders") == an_endpoint()

    job_registry.remove(an_endpoint())
    assert job_registry.find("orders") is None


@pytest.mark.parametrize("name", ["../escape", "a/b", "größe", ".", "with blank"])
def test_any_name_has_a_file_of_its_own_below_the_directory(home, name):
    """U2: a name is text, not a path."""
    path = job_registry.write(an_endpoint(name))

    assert path.parent == home / "weir"
    assert job_registry.find(name) == an_endpoint(name)


def test_a_file_of_another_kind_is_not_an_endpoint(home):
    """U2: neither shown nor deleted."""
    (home / "weir").mkdir()
    stranger = home / "weir" / "notes.json"
    stranger.write_text("{}")

    assert job_registry.running() == []
    assert stranger.exists()


def test_without_a_runtime_directory_the_users_state_is_used(monkeypatch, tmp_path):
    """U2: as on a machine without a login session."""
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))

    assert job_registry.directory() == tmp_path / ".local" / "state" / "weir"
