"""What a savepoint is described as, whole or damaged, and how two of them differ."""

import shutil
from dataclasses import replace

import pytest

from golden_savepoint import EXPECTED, GOLDEN
from weir.errors import JobRejected
from weir.state.snapshot_files import read_list
from weir.state.state_file_reader import header_of
from weir.storage import manifests, state_files
from weir.storage.inspection import StateFileReaders, describe, find, operators_of, states_of
from weir.storage.savepoint_diff import differences
from weir.storage.savepoint_disposal import dispose
from weir.storage.stores import store_for

STORE = store_for("file://")
OPENING = StateFileReaders(header_of, read_list)


def described(folder):
    return describe(STORE, find(STORE, f"file://{folder}"), OPENING)


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(GOLDEN, tmp_path / "copy")


def test_every_operator_is_described_with_its_widths():
    """U2: by uid, in the order of the job."""
    operators = described(GOLDEN).operators

    assert [o.uid for o in operators] == ["rows", "each", "sums", "files"]
    assert {(o.parallelism, o.max_parallelism) for o in operators} == {(2, 8)}


def test_every_keyed_state_is_described_with_kind_schema_rows_and_size():
    """S9, U2: as its files say."""
    (each,) = operators_of(described(GOLDEN), "each")

    kinds = [(state.name, state.kind, state.rows) for state in each.keyed]
    assert kinds == [
        ("total", "value", 5),
        ("seen", "list", 40),
        ("parities", "map", 10),
        ("$timers", "timers", 5),
    ]
    total = each.keyed[0]
    assert total.schema.names == ["key_group", "key", "value.total", "value.rows"]
    assert (total.files, total.bytes, total.is_layered) == (2, 1642 + 1722, False)


def test_positions_and_open_transactions_are_shown():
    """U2: what a source and a sink left."""
    by_uid = described(GOLDEN).by_uid

    assert by_uid["rows"].positions == EXPECTED["positions"]
    assert [t.checkpoint for t in by_uid["files"].transactions] == [2, 2]


def test_a_snapshot_may_be_named_by_its_manifest():
    """U2: a directory, with or without a slash, or the file in it."""
    for name in ("", "/", "/_metadata"):
        assert find(STORE, f"file://{GOLDEN}{name}").checkpoint == 2


def test_a_damaged_manifest_is_refused_with_its_path_and_the_reason(copy):
    """S8: and with a remedy."""
    manifest = copy / "_metadata"
    manifest.write_text(manifest.read_text().replace('"items": 1', '"items": 2', 1))

    with pytest.raises(JobRejected, match=r"copy/_metadata .*checksum.* Remedy: "):
        find(STORE, f"file://{copy}")


def test_damaged_files_are_named_and_the_rest_is_described(copy):
    """C18, S8: one was cut, one is gone."""
    cut, gone = copy / "each-0-keyed-0-e1-a1", copy / "sums-1-keyed-0-e1-a1"
    cut.write_bytes(cut.read_bytes()[:-1])
    gone.unlink()
    found = described(copy)

    first, second = map(str, found.problems)
    assert str(cut) in first
    assert "1641 bytes" in first
    assert str(gone) in second
    assert "does not exist" in second
    rows = {state.name: state.rows for state in found.by_uid["each"].keyed}
    assert rows["total"] < rows["$timers"] == 5
    assert found.by_uid["sums"].keyed


def test_who_is_not_there_is_refused_with_those_who_are():
    """U3: operators and states to choose of."""
    found = described(GOLDEN)

    with pytest.raises(JobRejected, match=r"no operator 'sum'.*rows, each, sums, files"):
        operators_of(found, "sum")
    with pytest.raises(JobRejected, match=r"no keyed state 'x' of sums.*aggregates"):
        states_of(operators_of(found, "sums"), "x")


def test_a_savepoint_does_not_differ_from_its_copy(copy):
    """U2, S10: wherever it is."""
    assert differences(described(GOLDEN), described(copy)) == ()


def test_a_state_that_is_gone_and_rows_that_are_fewer_are_differences(copy):
    """U2: operator, state, what, before, after."""
    for at in (0, 1):
        (copy / f"each-{at}-keyed-3-e1-a1").unlink()
    (copy / "sums-0-keyed-0-e1-a1").unlink()
    found = differences(described(GOLDEN), described(copy))

    assert [(d.operator, d.state, d.what, d.before) for d in found] == [
        ("each", "$timers", "state", "timers state"),
        ("sums", "aggregates", "rows", "5"),
        ("sums", "aggregates", "bytes", "3580"),
    ]


def merged(folder):
    """The golden savepoint with the keyed files of its operators in one file each."""
    manifest = find(STORE, f"file://{folder}")
    snapshots = []
    for snapshot in manifest.snapshots:
        path = f"file://{folder}/merged-{snapshot.subtask}-e1-a1"
        end, handles, contents = 0, [], []
        for handle in snapshot.keyed:
            contents.append(bytes(state_files.fetch(STORE, handle.file)))
            file = handle.file._replace(path=path, offset=end, content=b"")
            handles.append(handle._replace(file=file))
            end += file.bytes
        if contents:
            STORE.write(path, b"".join(contents) + b"?" * end)
        snapshots.append(replace(snapshot, keyed=tuple(handles)))
    manifests.write(STORE, replace(manifest, snapshots=tuple(snapshots)))


def test_merged_files_are_described_as_files_of_their_own_are(copy):
    """S6, U2: every segment is read and verified."""
    before = described(copy)
    merged(copy)

    after = described(copy)

    assert after.problems == ()
    rows = [[(k.name, k.rows, k.bytes) for k in o.keyed] for o in after.operators]
    assert rows == [[(k.name, k.rows, k.bytes) for k in o.keyed] for o in before.operators]


def test_the_statistics_tell_pieces_from_files_and_live_bytes_from_dead_ones(copy):
    """S6: half of each file is dead here."""
    assert not described(copy).files.is_merged
    merged(copy)
    keyed = [h.file for s in find(STORE, f"file://{copy}").snapshots for h in s.keyed]
    used = {file.path for file in keyed}

    files = described(copy).files

    assert files.is_merged
    assert files.physical_files == files.logical_files - len(keyed) + len(used)
    assert files.physical_bytes == files.logical_bytes + sum(file.bytes for file in keyed)
    assert files.amplification > 1.0


def test_a_disposed_savepoint_leaves_none_of_its_merged_files(copy):
    """S6, K5: each is deleted once, however many pieces it holds."""
    merged(copy)
    old = [url for url in STORE.list(f"file://{copy}") if "-keyed-" in url]
    STORE.delete(old)

    assert dispose(STORE, f"file://{copy}")

    assert [url for url in STORE.list(f"file://{copy}") if "merged-" in url] == []
