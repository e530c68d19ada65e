"""A directory that fills up, is forbidden, or is fought over by processes."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from weir.errors import JobRejected, Unavailable
from weir.storage.stores import OutcomeUnknown, WriteFailed

RACER = dedent(
    """
    import sys
    from weir.storage.stores import store_for

    directory, name = sys.argv[1:]
    store = store_for(directory)
    for _ in sys.stdin:
        break
    won = [k for k in range(20) if store.create_exclusive(f"{directory}/{k}", name.encode())]
    print(*won)
    """
)


def test_of_racing_processes_exactly_one_creates_each_entry(in_files):
    """C17: fsspec's own create had several winners here."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, in_files.directory, f"driver {n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(8)
    ]
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [racer.communicate(timeout=60)[0].split() for racer in racers]

    assert sorted(int(k) for wins in won for k in wins) == list(range(20))
    for n, wins in enumerate(won):
        assert all(in_files.store.read(in_files.url(k)) == f"driver {n}".encode() for k in wins)


def on_disk(place):
    root = Path(place.directory.removeprefix("file://"))
    return [path.name for path in root.rglob("*")] if root.exists() else []


def failing(monkeypatch, function, number):
    """The operating system refuses this function from now on."""

    def refuse(*_args, **_keywords):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, function, refuse)


@pytest.mark.parametrize("act", ["write", "create_exclusive"])
def test_a_full_disk_is_named_and_leaves_nothing(in_files, monkeypatch, act):
    """C18: full disks end in an abort, and the message says what to do."""
    in_files.store.write(in_files.url("chk-1/old"), b"kept")
    failing(monkeypatch, "fsync", errno.ENOSPC)

    with pytest.raises(
        WriteFailed, match=r"file://.*/chk-1/new .*the disk is full. Remedy: free space"
    ):
        getattr(in_files.store, act)(in_files.url("chk-1/new"), b"x")

    assert in_files.store.list(in_files.directory) == (in_files.url("chk-1/old"),)
    assert sorted(on_disk(in_files)) == ["chk-1", "old"]


def test_a_failed_write_leaves_the_old_object(in_files, monkeypatch):
    """C18: the last completed checkpoint stays restorable."""
    in_files.store.write(in_files.url("a"), b"old")
    failing(monkeypatch, "fsync", errno.EIO)

    with pytest.raises(WriteFailed, match="a could not be written: Input/output error"):
        in_files.store.write(in_files.url("a"), b"new")
    assert in_files.store.read(in_files.url("a")) == b"old"


def test_a_name_that_may_not_be_durable_is_in_doubt(in_files, monkeypatch):
    """C18: what cannot be made durable is reported, never assumed."""
    in_files.store.write(in_files.url("a"), b"old")
    opened = os.open

    def open_files_only(path, flags, *mode, **keywords):
        if flags & os.O_DIRECTORY:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(path, flags, *mode, **keywords)

    monkeypatch.setattr(os, "open", open_files_only)

    with pytest.raises(OutcomeUnknown, match="a may not be durable: Input/output error"):
        in_files.store.write(in_files.url("a"), b"new")


def test_a_file_system_without_hard_links_is_refused(in_files, monkeypatch):
    """C17: without exclusive creation there is no fencing."""
    failing(monkeypatch, "link", errno.EOPNOTSUPP)

    with pytest.raises(JobRejected, match=r"has no hard links .* or in S3"):
        in_files.store.create_exclusive(in_files.url("log/0"), b"x")
    assert on_disk(in_files) == ["log"]


def failing_after(monkeypatch, function, number):
    """The operating system does as it is asked and answers with an error, as a lost reply does."""
    act = getattr(os, function)

    def act_and_refuse(*args, **keywords):
        act(*args, **keywords)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, function, act_and_refuse)


LATE_ERRORS = [errno.EIO, errno.ETIMEDOUT, errno.ESTALE, errno.ENOENT]


@pytest.mark.parametrize("fail", [failing, failing_after])
@pytest.mark.parametrize("number", LATE_ERRORS, ids=errno.errorcode.get)
def test_a_link_whose_error_may_come_late_is_in_doubt(in_files, monkeypatch, number, fail):
    """C18: the entry may be in the log, so its checkpoint must not be given up."""
    with monkeypatch.context() as patch:
        fail(patch, "link", number)
        with pytest.raises(OutcomeUnknown, match="log/0 may have been created"):
            in_files.store.create_exclusive(in_files.url("log/0"), b"ours")

    assert in_files.store.create_exclusive(in_files.url("log/0"), b"ours")


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOENT], ids=errno.errorcode.get)
def test_a_rename_whose_error_may_come_late_is_in_doubt(in_files, monkeypatch, number):
    """C18: a manifest that may be there is not one that is surely missing."""
    failing_after(monkeypatch, "replace", number)

    with pytest.raises(OutcomeUnknown, match="chk-1/_metadata may have been written"):
        in_files.store.write(in_files.url("chk-1/_metadata"), b"x")
    assert in_files.store.read(in_files.url("chk-1/_metadata")) == b"x"


@pytest.mark.parametrize(("function", "act"), [("link", "create_exclusive"), ("replace", "write")])
def test_an_error_that_precedes_the_name_left_nothing(in_files, monkeypatch, function, act):
    """C18: a full directory ends in an abort, not in a doubt."""
    failing(monkeypatch, function, errno.ENOSPC)

    with pytest.raises(WriteFailed, match="the disk is full"):
        getattr(in_files.store, act)(in_files.url("log/0"), b"x")
    assert on_disk(in_files) == ["log"]


def test_an_entry_that_is_there_and_cannot_be_read_is_in_doubt(in_files, monkeypatch):
    """C18: it may be ours, put there by a try whose answer was lost."""
    in_files.store.write(in_files.url("log/0"), b"ours")
    monkeypatch.setattr(Path, "read_bytes", _forbidden)

    with pytest.raises(OutcomeUnknown, match="log/0 could not be read: Permission denied"):
        in_files.store.create_exclusive(in_files.url("log/0"), b"ours")


def _forbidden(path):
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


@pytest.mark.parametrize("act", ["write", "create_exclusive"])
def test_a_temporary_file_that_cannot_be_removed_does_not_undo_the_write(
    in_files, monkeypatch, caplog, act
):
    """C18: the object is there and durable; what is left beside it is for the collector."""
    failing(monkeypatch, "unlink", errno.EACCES)

    getattr(in_files.store, act)(in_files.url("log/0"), b"x")

    assert in_files.store.list(in_files.directory) == (in_files.url("log/0"),)
    assert "`weir gc` deletes it" in caplog.text


def test_a_place_that_cannot_be_a_directory_is_refused(in_files):
    """C18: a typing error is the user's to correct."""
    in_files.store.write(in_files.url("file"), b"x")

    with pytest.raises(JobRejected, match="file/chk-1/a could not be written: File exists"):
        in_files.store.write(in_files.url("file/chk-1/a"), b"x")
    with pytest.raises(JobRejected, match="could not be made: File exists"):
        in_files.store.make_new(in_files.url("file/chk-1"))
    with pytest.raises(JobRejected, match="could not be read: Is a directory"):
        in_files.store.read(in_files.directory)
    with pytest.raises(JobRejected, match="could not be deleted"):
        in_files.store.delete([in_files.directory])


def test_a_file_system_in_which_nothing_can_be_made_is_refused(in_files):
    """C18 U3: /proc says of every new directory that it does not exist, however often one asks."""
    url = "file:///proc/weir/log/0"

    for act in (in_files.store.write, in_files.store.create_exclusive):
        with pytest.raises(JobRejected, match=r"no directory can be made there. Remedy: choose"):
            act(url, b"x")


def test_a_directory_that_deletions_remove_again_and_again_is_made_again(in_files, monkeypatch):
    """S4: the last file of a checkpoint goes while another one's first is written."""
    touch, removed = Path.touch, []

    def raced(path, **keywords):
        if len(removed) < 5:
            removed.append(path)
            path.parent.rmdir()
        touch(path, **keywords)

    monkeypatch.setattr(Path, "touch", raced)
    in_files.store.write(in_files.url("chk-1/a"), b"x")

    assert in_files.store.read(in_files.url("chk-1/a")) == b"x"


def test_a_disk_that_cannot_be_read_is_unavailable(in_files, monkeypatch):
    """C18: nothing is said about what is stored there."""
    failing(monkeypatch, "stat", errno.EIO)

    with pytest.raises(Unavailable, match="Input/output error") as caught:
        in_files.store.size(in_files.url("a"))
    assert type(caught.value) is Unavailable


def test_a_file_of_a_write_that_broke_off_is_found_and_can_be_deleted(in_files):
    """S4: a process that dies while it writes leaves it, and it is no object."""
    in_files.store.write(in_files.url("chk-1/a"), b"x")
    left = in_files.url(f"chk-2/.weir-unfinished-{'0' * 32}")
    Path(left.removeprefix("file://")).parent.mkdir()
    Path(left.removeprefix("file://")).write_bytes(b"half")

    assert in_files.store.list(in_files.directory) == (in_files.url("chk-1/a"),)
    assert in_files.store.list_unfinished(in_files.directory) == (left,)
    in_files.store.delete([left])
    assert sorted(on_disk(in_files)) == ["a", "chk-1"]


def test_a_temporary_file_that_is_taken_away_breaks_off_its_write_alone(in_files, monkeypatch):
    """S4 C18: deleting it too early costs a retry, and damages nothing."""
    link = os.link

    def gone(source, target, **keywords):
        Path(source).unlink()
        link(source, target, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", gone)
        with pytest.raises(OutcomeUnknown):
            in_files.store.create_exclusive(in_files.url("log/0"), b"x")
    assert in_files.store.create_exclusive(in_files.url("log/0"), b"x")


def test_a_deleted_checkpoint_leaves_no_empty_directory(in_files):
    """S4: no unreferenced file stays."""
    in_files.store.write(in_files.url("chk-1/a"), b"x")
    in_files.store.write(in_files.url("chk-2/a"), b"x")

    in_files.store.delete([in_files.url("chk-1/a")])

    assert sorted(on_disk(in_files)) == ["a", "chk-2"]
