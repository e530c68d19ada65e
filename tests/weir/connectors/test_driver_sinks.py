"""What is committed to memory or to the console arrives in the driver, once."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from weir.connectors.console_sink import ConsoleSink
from weir.connectors.driver_staging import DriverStaging
from weir.connectors.memory_sink import MemorySink
from weir.core.ids import Millis, OperatorId, SubtaskId
from weir.errors import JobRejected
from weir.ports.operators import TaskInfo

PLACE = TaskInfo(SubtaskId(OperatorId("out"), 0), 1, 128, 1, 1, lambda: Millis(0))


def staged(sink, **columns):
    """One durable transaction, written by the copy of the sink that a slot has."""
    copy = pickle.loads(pickle.dumps(sink))  # noqa: S301
    writer = copy.open(PLACE)
    writer.write(pa.record_batch(columns))
    sealed = writer.seal()
    sealed.make_durable()
    return sealed.name


@pytest.fixture
def staging(tmp_path):
    return DriverStaging.at(f"file://{tmp_path}", {})


def test_memory_holds_committed_rows_once(staging):
    """R5."""
    sink = MemorySink(staging)
    name = staged(sink, id=[1, 2])
    assert sink.rows().num_rows == 0

    committer = sink.committer()
    for _ in range(2):
        committer.commit(1, (name,))

    assert sink.rows() == pa.table({"id": [1, 2]})
    assert staging.staging().names() == []


def test_memory_refuses_more_than_its_limit(staging):
    """U3."""
    sink = MemorySink(staging, limit_bytes=100)
    committer = sink.committer()
    committer.commit(1, (staged(sink, id=list(range(10))),))

    with pytest.raises(JobRejected, match="would hold 160 bytes: it may hold 100"):
        committer.commit(2, (staged(sink, id=list(range(10))),))

    assert sink.rows().num_rows == 10


def test_the_rows_do_not_travel_with_the_sink(staging):
    sink = MemorySink(staging)
    sink.committer().commit(1, (staged(sink, id=[1]),))

    copy = pickle.loads(pickle.dumps(sink))  # noqa: S301

    assert copy.rows().num_rows == 0


def test_what_an_earlier_driver_staged_is_shown_if_it_is_still_there(staging):
    """R5."""
    name = staged(MemorySink(staging), id=[1, 2])
    later = MemorySink(DriverStaging.at(staging.url, {}))

    later.committer().commit(1, (name,))

    assert later.rows().num_rows == 2


def test_what_ended_with_an_earlier_driver_does_not_stop_this_one(staging):
    """R1: its memory is gone, so there is nothing to repeat the commit into."""
    sink = MemorySink(staging)
    name = staged(sink, id=[1, 2])
    sink.committer().commit(1, (name,))
    later = MemorySink(DriverStaging.at(staging.url, {}))

    later.committer().commit(1, (name,))

    assert later.rows().num_rows == 0


def test_rows_that_the_driver_cannot_reach_are_missed(staging, tmp_path):
    """U3: the slots run elsewhere and wrote to a disk of their own."""
    elsewhere = replace(staging, url=f"file://{tmp_path}/elsewhere")
    name = staged(MemorySink(elsewhere), id=[1])

    with pytest.raises(JobRejected, match="path that all machines reach"):
        MemorySink(staging).committer().commit(1, (name,))


@pytest.mark.parametrize("kind", [MemorySink, ConsoleSink])
def test_leftovers_of_a_dead_attempt_are_deleted(staging, kind):
    """R5."""
    sink = kind(staging)
    staged(sink, id=[1])

    sink.committer().resolve((PLACE.subtask,), (1, 2), frozenset())

    assert staging.staging().names() == []


def test_without_a_path_rows_wait_in_the_temporary_directory(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert DriverStaging.at("", {}).url.startswith(f"file://{tmp_path}/weir-")


def test_the_console_prints_a_commit_once(staging, capsys):
    sink = ConsoleSink(staging)
    committer = sink.committer()
    name = staged(sink, id=[1, None], word=["one", "a word that is far too long"])

    for _ in range(2):
        committer.commit(7, (name,))

    assert capsys.readouterr().out == (
        "-------------------------------------------\n"
        "Batch: 7\n"
        "-------------------------------------------\n"
        "+----+--------------------+\n"
        "|  id|                word|\n"
        "+----+--------------------+\n"
        "|   1|                 one|\n"
        "|NULL|a word that is fa...|\n"
        "+----+--------------------+\n"
        "\n"
    )


def test_the_console_shows_no_more_rows_than_asked_for(staging, capsys):
    sink = ConsoleSink(staging, rows=2)

    sink.committer().commit(1, (staged(sink, id=[1, 2, 3]),))

    assert capsys.readouterr().out.endswith("|  2|\n+---+\nonly showing top 2 rows\n\n")


def test_whole_cells_are_left_aligned_and_uncut(staging, capsys):
    sink = ConsoleSink(staging, width=0)
    word = "w" * 30

    sink.committer().commit(1, (staged(sink, a=[word, "x"]),))

    assert f"|{word}|\n|x{' ' * 29}|\n" in capsys.readouterr().out


def test_an_empty_commit_prints_nothing(staging, capsys):
    ConsoleSink(staging).committer().commit(1, ())

    assert capsys.readouterr().out == ""
