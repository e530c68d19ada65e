"""A processor whose declarations have changed goes on with the rows that it kept before."""

from pyspark.sql import Row

from processor_harness import ProcessorHarness, written
from spark_processors import Remembering
from weir.core.ids import CheckpointId
from weir.state.snapshot_files import read_keyed

OLD = "count int, seen float, gone string"
NEW = "count long, seen double, note string"


def kept(kind, schema, *amounts, files=(), **place):
    job = ProcessorHarness(Remembering(kind, schema), **place).begin(files)
    job.process(*({"word": "a", "amount": amount} for amount in amounts))
    return job


def answer_of(job):
    """What the processor finds, in the words of its rows."""
    (row,) = job.process({"word": "a", "amount": 0})
    return row["word"]


def test_a_value_is_read_with_wider_numbers_new_nulls_and_without_what_was_dropped():
    """S12."""
    old = kept("value", OLD, 7)
    assert answer_of(old) == "[(7, 7.0, '7')]"

    new = kept("value", NEW, files=written(old.capture()))

    assert answer_of(new) == "[(7, 7.0, None)]"


def test_a_list_keeps_its_order_and_mixes_old_rows_with_new_ones():
    """S12."""
    old = kept("list", OLD, 1, 2)

    new = kept("list", NEW, 3_000_000_000, files=written(old.capture()))

    assert (
        answer_of(new)
        == "[(1, 1.0, None), (2, 2.0, None), (3000000000, 3000000000.0, '3000000000')]"
    )


def test_a_map_finds_its_entries_by_wider_keys():
    """S12."""
    old = kept("map", OLD, 5)

    new = kept("map", NEW, 6, files=written(old.capture()))

    assert answer_of(new) == "[(5, 5.0, None), (6, 6.0, '6')]"


def test_structs_change_inside():
    """S12: fields of a field, also in an array."""
    old = ProcessorHarness(Remembering("value", "a array<struct<n:int,gone:string>>"))
    old.begin().process({"word": "a", "amount": 3})
    files = written(old.capture())

    new = ProcessorHarness(Remembering("value", "a array<struct<n:bigint,new:string>>"))

    assert answer_of(new.begin(files)) == f"[([{Row(n=3, new=None)}],)]"


def test_a_state_that_the_checkpoint_has_not_begins_empty():
    """S12."""
    old = kept("value", OLD, 7)
    new = Remembering("value", OLD, more=("second", "n int"))

    job = ProcessorHarness(new).begin(written(old.capture()))

    assert answer_of(job) == "[(7, 7.0, '7')]"
    assert [piece.name for piece in job.capture().keyed] == ["first", "second"]


def test_layers_of_two_declarations_are_read_as_the_newest_says():
    """S12, S4: an older file under a newer one of wider rows."""
    old = kept("value", OLD, 7, is_incremental=True)
    old.process({"word": "b", "amount": 8})
    whole = written(old.capture())
    new = kept("value", NEW, 9, files=whole, is_incremental=True)
    layer = [(piece.groups, piece.write()) for piece in new.capture().keyed]

    job = kept("value", NEW, files=[*whole, *layer])

    assert answer_of(job) == "[(9, 9.0, '9')]"
    assert job.process({"word": "b", "amount": 0}) == [{"word": "[(8, 8.0, None)]", "total": 0}]


def test_what_was_declared_differently_is_written_anew_as_a_whole():
    """S12, S4: a field that was dropped must not come back from an older layer."""
    old = kept("value", OLD, 7, is_incremental=True)
    files = written(old.capture())

    changed = kept("value", NEW, 9, files=files, is_incremental=True)
    same = kept("value", OLD, 9, files=files, is_incremental=True)

    def layer_of(job):
        (piece,) = job.operator.capture(CheckpointId(2)).keyed
        return piece.since(CheckpointId(0))

    assert layer_of(changed) is None
    assert layer_of(same) is not None


def test_what_was_widened_is_written_in_the_new_types():
    """S12, S9."""
    old = kept("value", OLD, 7)
    new = kept("value", NEW, files=written(old.capture()))

    ((groups, data),) = written(new.capture())

    names = read_keyed(data, groups).table.schema.names
    assert names == ["word", "value.count", "value.seen", "value.note"]
