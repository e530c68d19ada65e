"""A local copy is a shortcut that never leads astray."""

import logging

import pyarrow as pa
import pytest

from weir.core.ids import SubtaskId
from weir.storage.file_store import FileStore
from weir.storage.local_copies import STRANGE_AFTER, LocalCopies, Owner
from weir.storage.state_files import put

CONTENT = pa.py_buffer(b"state" * 1000)
SUM = SubtaskId("a sum / of rows", 0)
COUNT = SubtaskId("count", 1)
FIRST = Owner(SUM, 1)


@pytest.fixture
def file(tmp_path):
    return put(FileStore(), f"file://{tmp_path}/remote", CONTENT)


@pytest.fixture
def copies(tmp_path):
    return LocalCopies(tmp_path / "local")


def test_a_copy_is_found_by_the_file_it_stands_for(file, copies):
    """S13: on this machine, whichever process kept it."""
    copies.keep(FIRST, file.path, CONTENT)

    assert copies.find(file).to_pybytes() == CONTENT.to_pybytes()


def test_each_segment_of_a_file_has_its_own_copy(file, copies):
    """S6, S13: the copies of two pieces that share a file are not mistaken for each other."""
    other = pa.py_buffer(b"other" * 1000)
    second = put(FileStore(), file.path, other)._replace(offset=5000)
    copies.keep(FIRST, file.segment, CONTENT)
    copies.keep(FIRST, second.segment, other)

    assert copies.find(file).to_pybytes() == CONTENT.to_pybytes()
    assert copies.find(second).to_pybytes() == other.to_pybytes()


def test_a_file_without_a_copy_has_none(file, copies):
    """S13: another machine, or a disk that did not survive."""
    assert copies.find(file) is None


@pytest.mark.parametrize("content", [b"", b"state" * 999, b"strte" * 1000])
def test_a_damaged_copy_is_not_believed(file, copies, content, caplog):
    """S13 C18: cut or changed, the file itself is read instead."""
    copies.keep(FIRST, file.path, pa.py_buffer(content))

    with caplog.at_level(logging.WARNING):
        assert copies.find(file) is None
    assert "reading the file itself" in caplog.text


def test_a_disk_that_fails_costs_the_copy_and_nothing_else(file, tmp_path, caplog):
    """S13: the checkpoint is as durable as before."""
    (tmp_path / "local").write_text("not a directory")
    copies = LocalCopies(tmp_path / "local")

    with caplog.at_level(logging.WARNING):
        copies.keep(FIRST, file.path, CONTENT)
        copies.forget([file.path])
    assert "No local copy" in caplog.text
    assert copies.find(file) is None


def test_a_copy_that_is_forgotten_is_gone(file, copies, tmp_path):
    """S13: cleaned up with the checkpoints that referred to it."""
    copies.keep(FIRST, file.path, CONTENT)
    copies.forget([file.path, "file:///never/kept"])

    assert names(tmp_path) == []


def names(tmp_path):
    """Every file of the copies' directory that is no mark."""
    files = [path for path in (tmp_path / "local").rglob("*") if path.is_file()]
    return sorted(path.name for path in files if not path.name.endswith("-complete"))


def test_a_subtask_finds_what_another_had_written(file, copies):
    """S13 S11: state moves between subtasks when a job is rescaled."""
    copies.keep(Owner(COUNT, 4), file.path, CONTENT)

    assert copies.find(file).to_pybytes() == CONTENT.to_pybytes()


def test_a_completed_checkpoint_ends_the_copies_that_only_older_ones_need(copies, tmp_path):
    """S13: what a dead process left is cleared away by its successor; what is built on stays."""
    for checkpoint, path in [(1, "base"), (2, "left by the dead"), (3, "new"), (4, "pending")]:
        copies.keep(Owner(SUM, checkpoint), path, CONTENT)
    copies.keep(Owner(COUNT, 1), "another's", CONTENT)

    copies.completed(Owner(SUM, 3), {"base", "new"})

    assert [name.partition("-")[0] for name in names(tmp_path)] == ["1", "1", "3", "4"]


def test_a_copy_that_was_never_finished_is_cleared_away(copies, tmp_path):
    """S13: a process can die while it writes one."""
    copies.keep(FIRST, "whole", CONTENT)
    (tmp_path / "local" / FIRST.name / ".1-half").touch()

    copies.completed(Owner(SUM, 2), {"whole"})

    assert len(names(tmp_path)) == 1


def test_what_others_have_put_beside_the_copies_stays_and_harms_nothing(copies, tmp_path):
    """S13: a disk of the machine is not ours alone."""
    copies.keep(FIRST, "old", CONTENT)
    theirs = [tmp_path / "local" / FIRST.name / name for name in ("lost+found", "notes", "7up-x")]
    for place in theirs:
        place.touch()

    copies.completed(Owner(SUM, STRANGE_AFTER + 9), ())

    assert all(place.exists() for place in theirs)
    assert len(names(tmp_path)) == len(theirs)


def test_a_directory_without_an_owner_goes_after_many_checkpoints(copies, tmp_path):
    """S13: its subtask lives on another machine now, or nowhere."""
    copies.keep(Owner(COUNT, 1), "stranger", CONTENT)
    for checkpoint in range(1, STRANGE_AFTER + 3):
        assert (tmp_path / "local" / Owner(COUNT, 1).name).exists()
        copies.keep(Owner(SUM, checkpoint), f"file {checkpoint}", CONTENT)
        copies.completed(Owner(SUM, checkpoint), {f"file {checkpoint}"})

    assert not (tmp_path / "local" / Owner(COUNT, 1).name).exists()
    assert copies.held() == ((0, STRANGE_AFTER + 2),)


def test_a_disk_tells_whose_copies_it_holds_and_what_they_are_good_for(copies):
    """S13: an index is as good as the newest checkpoint that one of its subtasks heard of."""
    assert copies.held() == ()
    for owner in (Owner(SUM, 4), Owner(COUNT, 5), Owner(SubtaskId("more", 1), 6)):
        copies.keep(owner, f"file of {owner}", CONTENT)
    assert copies.held() == ()
    for owner in (Owner(SUM, 4), Owner(COUNT, 5), Owner(SubtaskId("more", 1), 6)):
        copies.completed(owner, {f"file of {owner}"})

    assert copies.held() == ((0, 4), (1, 6))


def test_a_disk_has_one_name_for_all_its_slots(copies, tmp_path):
    """S13: two disks never share one."""
    assert copies.disk() == LocalCopies(tmp_path / "local").disk() != ""
    assert copies.disk() != LocalCopies(tmp_path / "elsewhere").disk()
    assert [path.name for path in (tmp_path / "local").iterdir()] == ["disk"]


def test_a_disk_that_cannot_be_written_has_no_name(tmp_path, caplog):
    """S13: nothing is kept there, so no subtask is placed for it."""
    (tmp_path / "local").write_text("not a directory")
    with caplog.at_level(logging.WARNING):
        assert LocalCopies(tmp_path / "local").disk() == ""
    assert LocalCopies(tmp_path / "local").held() == ()


def test_a_copy_of_a_file_that_never_changes_is_a_second_name_of_it(file, copies, tmp_path):
    """S13: it takes no room, and outlives its source; a restore gives it a third name."""
    source, restored = tmp_path / "000007.sst", tmp_path / "restored.sst"
    source.write_bytes(CONTENT)

    copies.link(FIRST, file.segment, source)
    assert source.stat().st_nlink == 2
    source.unlink()

    assert copies.find(file).to_pybytes() == CONTENT.to_pybytes()
    assert copies.link_to(file, restored)
    assert restored.stat().st_nlink == 2
    assert not copies.link_to(file._replace(checksum="another"), tmp_path / "no.sst")
