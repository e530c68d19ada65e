"""The commands `weir inspect` and `weir diff`, on a savepoint that is there."""

import json
import shutil
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from golden_savepoint import EXPECTED, GOLDEN
from weir.cli.__main__ import app
from weir.cli.inspect_output import as_json, describe_snapshot, file_statistics, log_length
from weir.core.snapshots import KeyedHandle, KeyGroupRange, StateFile
from weir.storage.inspection import FileStatistics


@pytest.fixture(autouse=True)
def _terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def weir(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def cells(text):
    """The rows of tables, as their cells."""
    return [line.split() for line in text.splitlines() if line.strip()]


def test_a_savepoint_is_a_table_of_operators_and_states():
    """U2: uid, widths, states with kind, rows and schema, positions and transactions."""
    shown = weir("inspect", GOLDEN)

    assert shown.exit_code == 0
    assert "savepoint 2 of epoch 1" in shown.stdout
    assert "key int64, value.total int64, value.rows int32" in shown.stdout
    assert "rows: split 0000 is read up to 20" in shown.stdout
    assert "files: transaction files-0-1-1-1-" in shown.stdout


def test_rows_of_a_state_can_be_shown():
    """U2: as many as are asked for."""
    words = ("inspect", GOLDEN, "--operator", "each", "--state", "total", "--rows", 3)
    table = cells(weir(*words).stdout)

    heading = table.index(["key_group", "key", "value.total", "value.rows"])
    rows = table[heading + 2 :]
    assert len(rows) == 3
    assert all([int(total), int(n)] == EXPECTED["total"][key] for _, key, total, n in rows)


def test_merged_files_are_shown_with_what_they_cost():
    """S6, U2: pieces and files, their bytes, and the space amplification; else not a word."""
    kib = 1024
    golden = describe_snapshot(f"file://{GOLDEN}")[1]
    merged = replace(golden, files=FileStatistics(12, 100 * kib, 3, 150 * kib))

    assert [*file_statistics(golden)] == []
    assert [*file_statistics(merged)] == [
        "12 pieces of 100.0 KiB in 3 files of 150.0 KiB, space amplification 1.50"
    ]
    assert as_json(merged, [])["files"] == {
        "logicalFiles": 12,
        "logicalBytes": 100 * kib,
        "physicalFiles": 3,
        "physicalBytes": 150 * kib,
        "spaceAmplification": 1.5,
    }


def test_the_length_of_a_log_is_shown():
    """S5, U2: what a restore replays over the whole state, for every range of key groups."""
    golden = describe_snapshot(f"file://{GOLDEN}")[1]
    keyed = next(state for operator in golden.operators for state in operator.keyed)
    groups = [KeyGroupRange(0, 63), KeyGroupRange(64, 127)]
    handles = [KeyedHandle(g, StateFile(f"f{n}", n * 1024)) for g in groups for n in (100, 2, 3)]

    assert log_length(replace(keyed, handles=tuple(handles))) == (
        f"state {keyed.name}: a whole of 200.0 KiB, and over it 4 segments of changes, 10.0 KiB"
    )


def test_programs_are_answered_in_json():
    """U2: all of it, with the rows that were asked for."""
    shown = json.loads(weir("inspect", GOLDEN, "--json", "--state", "total", "--rows", 9).stdout)

    by_uid = {operator["uid"]: operator for operator in shown["operators"]}
    assert by_uid["rows"]["positions"] == EXPECTED["positions"]
    assert by_uid["each"]["states"][0]["schema"]["value.total"] == "int64"
    (total,) = shown["rows"]
    assert {str(row["key"]): row["value.total"] for row in total["rows"]} == {
        key: sums for key, (sums, _) in EXPECTED["total"].items()
    }


def test_a_damaged_file_is_reported_with_path_and_reason(tmp_path):
    """S8, U3: after the rest; a script sees the exit code."""
    copy = shutil.copytree(GOLDEN, tmp_path / "copy")
    (copy / "sums-0-keyed-0-e1-a1").write_bytes(b"x")
    shown = weir("inspect", copy)

    assert shown.exit_code == 1
    assert f"Damaged: file://{copy}/sums-0-keyed-0-e1-a1 cannot be restored from" in shown.stderr
    assert "value.total" in shown.stdout


def test_what_is_no_snapshot_is_refused(tmp_path):
    """U3: path, reason, remedy."""
    shown = weir("inspect", tmp_path)

    assert shown.exit_code == 1
    assert f"Error: manifest file://{tmp_path}/_metadata cannot be read" in shown.stderr
    assert "Remedy: " in shown.stderr


def test_a_diff_shows_what_is_not_the_same(tmp_path):
    """U2: nothing for a copy, and a state that is gone."""
    copy = shutil.copytree(GOLDEN, tmp_path / "copy")
    assert weir("diff", GOLDEN, copy).stdout == ""

    for at in (0, 1):
        (copy / f"each-{at}-keyed-1-e1-a1").unlink()
    shown = weir("diff", GOLDEN, copy)
    assert ["each", "seen", "state", "list", "state", "–"] in cells(shown.stdout)
    assert shown.exit_code == 1
