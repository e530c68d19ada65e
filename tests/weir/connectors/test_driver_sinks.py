"""What is committed to memory or to the console arrives in the driver, once."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from weir.connectors.console_sink import ConsoleSink
from weir.connectors.memory_sink import MemorySink
from weir.connectors.scratch import Scratch
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
def scratch(tmp_path):
    return Scratch.at(f"file://{tmp_path}", {})


def test_memory_holds_committed_rows_once(scratch):
    """R5."""
    sink = MemorySink(scratch)
    name = staged(sink, id=[1, 2])
    assert sink.rows().num_rows == 0

    committer = sink.committer()
    for _ in range(2):
        committer.commit(1, (name,))

    assert sink.rows() == pa.table({"id": [1, 2]})
    assert scratch.staging().names() == []


def test_memory_refuses_more_than_its_limit(scratch):
    """U3."""
    sink = MemorySink(scratch, limit_bytes=100)
    committer = sink.committer()
    committer.commit(1, (staged(sink, id=list(range(10))),))

    with pytest.raises(JobRejected, match="would hold 160 bytes and may hold 100"):
        committer.commit(2, (staged(sink, id=list(range(10))),))

    assert sink.rows().num_rows == 10


def test_the_rows_do_not_travel_with_the_sink(scratch):
    sink = MemorySink(scratch)
    sink.committer().commit(1, (staged(sink, id=[1]),))

    copy = pickle.loads(pickle.dumps(sink))  # noqa: S301

    assert copy.rows().num_rows == 0


def test_what_an_earlier_driver_staged_is_shown_if_it_is_still_there(scratch):
    """R5."""
    name = staged(MemorySink(scratch), id=[1, 2])
    later = MemorySink(Scratch.at(scratch.url, {}))

    later.committer().commit(1, (name,))

    assert later.rows().num_rows == 2


def test_what_ended_with_an_earlier_driver_does_not_stop_this_one(scratch):
    """R1: its memory is gone, so there is nothing to repeat the commit into."""
    sink = MemorySink(scratch)
    name = staged(sink, id=[1, 2])
    sink.committer().commit(1, (name,))
    later = MemorySink(Scratch.at(scratch.url, {}))

    later.committer().commit(1, (name,))

    assert later.rows().num_rows == 0


def test_rows_that_the_driver_cannot_reach_are_missed(scratch, tmp_path):
    """U3: the slots run elsewhere and wrote to a disk of their own."""
    elsewhere = replace(scratch, url=f"file://{tmp_path}/elsewhere")
    name = staged(MemorySink(elsewhere), id=[1])

    with pytest.raises(JobRejected, match="path that everyone reaches"):
        MemorySink(scratch).committer().commit(1, (name,))


@pytest.mark.parametrize("kind", [MemorySink, ConsoleSink])
def test_leftovers_of_a_dead_attempt_are_deleted(scratch, kind):
    """R5."""
    sink = kind(scratch)
    staged(sink, id=[1])

    sink.committer().resolve((PLACE.subtask,), (1, 2), frozenset())

    assert scratch.staging().names() == []


def test_without_a_path_rows_wait_in_the_temporary_directory(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert Scratch.at("", {}).url.startswith(f"file://{tmp_path}/weir-")


def test_the_console_prints_a_commit_once(scratch, capsys):
    sink = ConsoleSink(scratch)
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


def test_the_console_shows_no_more_rows_than_asked_for(scratch, capsys):
    sink = ConsoleSink(scratch, rows=2)

    sink.committer().commit(1, (staged(sink, id=[1, 2, 3]),))

    assert capsys.readouterr().out.endswith("|  2|\n+---+\nonly showing top 2 rows\n\n")


def test_whole_cells_are_left_aligned_and_uncut(scratch, capsys):
    sink = ConsoleSink(scratch, width=0)
    word = "w" * 30

    sink.committer().commit(1, (staged(sink, a=[word, "x"]),))

    assert f"|{word}|\n|x{' ' * 29}|\n" in capsys.readouterr().out


def test_an_empty_commit_prints_nothing(scratch, capsys):
    ConsoleSink(scratch).committer().commit(1, ())

    assert capsys.readouterr().out == ""
