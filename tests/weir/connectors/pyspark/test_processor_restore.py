"""The state of a processor survives captures and restores, at any parallelism."""

import pyarrow as pa
import pytest
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from processor_harness import ProcessorHarness, written
from spark_processors import History, RunningTotal, Tally
from weir.core.snapshots import KeyGroupRange
from weir.errors import JobRejected
from weir.state.snapshot_files import read_keyed

pytestmark = pytest.mark.usefixtures("each_backend")

WORDS = [f"word {n}" for n in range(500)]
ALL_GROUPS = KeyGroupRange(0, 127)


class Declaring(StatefulProcessor):
    """Declares what a test wants, and does nothing."""

    def __init__(self, declare):
        self.declare = declare

    def init(self, handle):
        self.declare(handle)

    def handleInputRows(self, *_):  # noqa: N802 - PySpark's name
        return iter(())


def totals(job, words):
    return {row["word"]: row["total"] for row in job.words(*words)}


@pytest.mark.parametrize("processor", [RunningTotal, History, Tally])
def test_every_kind_of_state_goes_on_where_it_was_captured(processor):
    """S1, C1."""
    job = ProcessorHarness(processor()).begin()
    rows = [{"word": word, "amount": amount} for word in "abc" for amount in (1, 2, 2)]
    job.process(*rows)

    again = ProcessorHarness(processor()).begin(written(job.capture()))

    assert again.process(*rows) == job.process(*rows)


def test_state_moves_by_key_groups_when_the_job_becomes_wider():
    """S11."""
    job = ProcessorHarness(RunningTotal()).begin()
    job.words(*WORDS)
    files = written(job.capture())

    kept = 0
    for index in range(3):
        part = ProcessorHarness(RunningTotal(), index=index, parallelism=3)
        part.begin([(part.groups, data) for _, data in files])
        kept += sum(total == 2 for total in totals(part, WORDS).values())

    assert kept == len(WORDS), "each key is known to exactly one subtask"


def test_state_of_several_subtasks_comes_together_when_the_job_becomes_narrower():
    """S11."""
    files = []
    for index in range(3):
        part = ProcessorHarness(RunningTotal(), index=index, parallelism=3).begin()
        part.words(*(word for n, word in enumerate(WORDS) if n % 3 == index))
        files += [(ALL_GROUPS, data) for _, data in written(part.capture())]

    job = ProcessorHarness(RunningTotal()).begin(files)

    assert totals(job, WORDS) == dict.fromkeys(WORDS, 2)


def test_a_snapshot_shows_the_moment_of_its_capture_while_processing_goes_on():
    """S3, C1."""
    job = ProcessorHarness(RunningTotal()).begin()
    job.words(*WORDS)
    first = job.capture()
    job.words(*WORDS, "new")
    second = job.capture()
    job.words(*WORDS)

    for captured, total in ((second, 3), (first, 2)):
        again = ProcessorHarness(RunningTotal()).begin(written(captured))
        assert totals(again, WORDS) == dict.fromkeys(WORDS, total)


def test_a_file_has_typed_columns_and_the_name_of_its_state():
    """S9, X2: no pickle, and any Arrow tool can read it."""
    job = ProcessorHarness(Tally()).begin()
    job.process({"word": "a", "amount": 7})

    ((_, data),) = written(job.capture())
    restored = read_keyed(data, ALL_GROUPS)

    assert restored.name == "counts"
    assert restored.key_columns == ("word",)
    assert restored.table.to_pylist() == [{"word": "a", "user_key.amount": 7, "value.count": 1}]
    assert restored.table.schema.field("value.count").type == pa.int64()


def test_a_released_capture_cannot_be_mistaken_for_an_empty_one():
    """S3, C18."""
    job = ProcessorHarness(RunningTotal()).begin()
    job.words("a")
    captured = job.capture()

    captured.release()

    with pytest.raises(AssertionError, match="released"):
        written(captured)


def test_a_state_with_other_columns_than_the_checkpoint_is_refused_with_the_difference():
    """S12, U3."""
    job = ProcessorHarness(RunningTotal()).begin()
    job.words("a")
    changed = Declaring(
        lambda handle: handle.getValueState("total", "count string, more int not null")
    )

    with pytest.raises(JobRejected) as refused:
        ProcessorHarness(changed).begin(written(job.capture()))

    assert "field 'count' was bigint and is string now" in str(refused.value)
    assert "field 'more' is new and NOT NULL" in str(refused.value)


def test_a_state_of_another_kind_is_refused():
    """S12, U3."""
    job = ProcessorHarness(RunningTotal()).begin()
    job.words("a")
    changed = Declaring(lambda handle: handle.getListState("total", "count long"))

    with pytest.raises(JobRejected, match="it was a value state and is a list state now"):
        ProcessorHarness(changed).begin(written(job.capture()))


def test_a_restored_state_that_the_processor_does_not_declare_is_dropped():
    """C15: the driver has asked whether it may be, and refuses it if not."""
    job = ProcessorHarness(RunningTotal()).begin()
    job.words("a")

    again = ProcessorHarness(Declaring(lambda _: None)).begin(written(job.capture()))

    assert again.capture().keyed == ()


def test_a_restored_state_can_be_dropped_by_name():
    """D1: deleteIfExists."""
    job = ProcessorHarness(RunningTotal()).begin()
    job.words("a")
    dropping = Declaring(lambda handle: handle.deleteIfExists("total"))

    again = ProcessorHarness(dropping).begin(written(job.capture()))

    assert again.capture().keyed == ()


@pytest.mark.parametrize(
    ("declare", "reason"),
    [
        (lambda handle: handle.getValueState("$own", "n int"), "begin with"),
        (lambda handle: handle.getValueState("n", "n int", 0), "above zero"),
        (lambda handle: handle.getValueState("n", "n integr"), "did you mean"),
        (
            lambda handle: (handle.getValueState("n", "n int"), handle.getListState("n", "n int")),
            "declared twice, differently",
        ),
        (lambda handle: handle.registerTimer(1), "init has no key"),
    ],
)
def test_a_bad_declaration_is_refused_with_its_reason(declare, reason):
    """U3."""
    with pytest.raises(JobRejected, match=reason):
        ProcessorHarness(Declaring(declare)).begin()


def test_a_state_declared_twice_alike_is_one_state():
    """D1."""
    states = []

    def declare(handle):
        states.extend(handle.getValueState("n", "n int") for _ in range(2))

    ProcessorHarness(Declaring(declare)).begin()

    assert states[0] is states[1]
