"""The command `weir gc`, on a directory that drivers have left."""

import os

import pytest
from typer.testing import CliRunner

from weir.cli.__main__ import app
from weir.core.ids import CheckpointId, Epoch
from weir.core.log_entries import EpochTaken
from weir.storage.job_log_store import JobLog
from weir.storage.stores import store_for

LEFT = "chk-3/sums-0-keyed-0-e1-a1"


@pytest.fixture
def home(tmp_path):
    """A job whose first driver died during checkpoint 3, and whose second one is in charge."""
    store, url = store_for("file://"), f"file://{tmp_path}"
    log = JobLog(store, url)
    for index, epoch in enumerate((1, 2)):
        entry = EpochTaken(
            Epoch(epoch),
            "d",
            "x",
            goes_on=True,
            restoring="",
            claims=False,
            ids_until=CheckpointId(99),
        )
        assert log.create(index, entry)
    store.write(f"{url}/{LEFT}", b"state")
    store.write(f"{url}/chk-9/sums-0-keyed-0-e2-a1", b"state")
    return tmp_path


def weir(*words, answer=""):
    return CliRunner().invoke(app, [str(word) for word in words], input=answer)


def test_a_dry_run_shows_and_deletes_nothing(home):
    """S4, U2: the list is on standard output."""
    shown = weir("gc", home, "--dry-run")

    assert shown.exit_code == 0
    assert LEFT in shown.stdout
    assert "chk-9" not in shown.stdout
    assert "1 files, 5 B" in shown.stderr
    assert (home / LEFT).exists()


def test_it_asks_before_it_deletes(home):
    """U2: and takes no for an answer."""
    assert weir("gc", home, answer="n\n").exit_code == 1
    assert (home / LEFT).exists()

    assert weir("gc", home, answer="y\n").exit_code == 0
    assert not (home / LEFT).exists()


def test_a_script_says_yes_beforehand(home):
    """U2, S4: the newest epoch's files stay, and a second run finds nothing."""
    assert weir("gc", home, "--yes").exit_code == 0

    assert not (home / LEFT).exists()
    assert (home / "chk-9/sums-0-keyed-0-e2-a1").exists()
    assert "Nothing is left over." in weir("gc", home, "--yes").stderr


def test_young_files_stay_if_an_age_is_given(home):
    """U2: the file was written a moment ago."""
    weir("gc", home, "--yes", "--older-than", "1h")
    assert (home / LEFT).exists()


def test_temporary_files_of_writes_that_broke_off_are_deleted(home):
    """S4: whichever driver left them; one that is written to now stays."""
    old, young = (home / f"log/.weir-unfinished-{letter * 32}" for letter in "ab")
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))

    shown = weir("gc", home, "--yes")

    assert f"log/{old.name}" in shown.stdout
    assert "1 of epochs before 2, 1 of interrupted writes" in shown.stderr
    assert not old.exists()
    assert young.exists()


def test_an_age_that_is_none_and_a_directory_that_is_no_jobs_are_refused(home, tmp_path_factory):
    """U3: with words."""
    assert "--older-than soon" in weir("gc", home, "--older-than", "soon").stderr
    assert "has no log" in weir("gc", tmp_path_factory.mktemp("empty")).stderr
