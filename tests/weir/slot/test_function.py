"""The operator around a user's function: when it is called, what it may give back, how it fails."""

import pyarrow as pa
import pytest

from fake_connectors import NUMBERS, numbers_of, rows
from operator_state_functions import Follows, Holds
from weir.core.ids import CheckpointId, EdgeId, Millis, OperatorId, SubtaskId
from weir.dataflow.function_states import function_head
from weir.dataflow.physical import FunctionHead
from weir.dataflow.process_functions import ProcessFunction
from weir.errors import JobRejected
from weir.ports.operators import RestoredState, TaskInfo
from weir.ports.user_code_errors import UserCodeFailed
from weir.slot.function import FunctionOperator

MAIN, SIDE = EdgeId("main"), EdgeId("side")
PLACE = TaskInfo(SubtaskId(OperatorId("work"), 1), 3, 16, 1, 1, lambda: Millis(0))


def an_operator(function, restored_state=None):
    operator = FunctionOperator(function_head(function, NUMBERS, is_connected=False), PLACE)
    operator.restore(restored_state or RestoredState())
    return operator


def a_follower(restored_state=None):
    head = function_head(Follows(), NUMBERS, is_connected=True)
    operator = FunctionOperator(FunctionHead(head.function, head.states, NUMBERS, (SIDE,)), PLACE)
    operator.restore(restored_state or RestoredState())
    return operator


def left_by(operator):
    """What the operator leaves to its successor."""
    lists = operator.capture(CheckpointId(1)).lists
    return RestoredState(lists={piece.name: list(piece.items) for piece in lists})


def refusal(act):
    with pytest.raises(JobRejected) as refused:
        act()
    return str(refused.value)


# Batches


class Does(ProcessFunction):
    """Does with a batch what the test sets."""

    def __init__(self, do):
        self.do = do

    def processBatch(self, batch):  # noqa: N802
        return self.do(batch)


def test_what_a_function_makes_of_a_batch_goes_on():
    made = an_operator(Does(lambda batch: [batch, batch])).process(MAIN, rows(1, 2))

    assert numbers_of(made) == [1, 2, 1, 2]


def test_a_generator_is_drained_before_the_call_returns():
    """A12: no row is ever only inside a generator."""

    def twice(batch):
        yield batch
        yield batch

    made = an_operator(Does(twice)).process(MAIN, rows(1))

    assert isinstance(made, list)
    assert numbers_of(made) == [1, 1]


def test_a_function_that_returns_nothing_emits_nothing():
    assert an_operator(Does(lambda _: None)).process(MAIN, rows(1)) == []


def test_columns_are_brought_into_the_declared_types():
    (made,) = an_operator(
        Does(lambda _: [pa.record_batch({"n": pa.array([1], pa.int32())})])
    ).process(MAIN, rows(1))

    assert made.schema == NUMBERS


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda _: 1 / 0, "Does.processBatch failed at .*: ZeroDivisionError"),
        (lambda _: [3], r"Does.processBatch \(it gave a int, not a pyarrow.RecordBatch\) failed"),
        (
            lambda _: [pa.record_batch({"m": [1]})],
            r"\(its result has the columns m; declared are n\) failed at",
        ),
    ],
)
def test_a_function_that_fails_is_named_and_its_batch_is_shown(do, words):
    """U3."""
    with pytest.raises(UserCodeFailed, match=words) as failed:
        an_operator(Does(do)).process(MAIN, rows(7, 8))

    assert failed.value.row == "a batch of 2 rows that begins with {'n': 7}"


def test_a_batch_of_one_row_is_shown_as_its_row():
    with pytest.raises(UserCodeFailed) as failed:
        an_operator(Does(lambda _: 1 / 0)).process(MAIN, rows(7))

    assert failed.value.row == "{'n': 7}"


# Life


class Lives(ProcessFunction):
    """Writes down, in a list that copies share, what is called."""

    def __init__(self, calls, fails=""):
        self.calls = calls
        self.fails = fails

    def init(self, handle):
        self.handle = handle
        self.held = handle.getListState("held", "n long")

    def open(self, index, parallelism):
        self.calls.append(("open", index, parallelism, list(self.held.get())))
        if self.fails == "open":
            raise OSError("no connection")

    def processBatch(self, batch):  # noqa: N802
        self.held.appendArrow(batch)

    def finish(self):
        self.calls.append("finish")
        yield rows(*(n for (n,) in self.held.get()))

    def close(self):
        self.calls.append("close")


class Shared(list):
    """A list of which every copy is the same."""

    def __deepcopy__(self, memo):
        return self


def test_a_function_is_opened_with_its_place_when_its_state_is_there():
    """S1."""
    before = an_operator(Lives(Shared()))
    before.process(MAIN, rows(5))
    calls = Shared()

    operator = an_operator(Lives(calls), left_by(before))
    assert numbers_of(operator.finish()) == [5]
    operator.close()

    assert calls == [("open", 1, 3, [(5,)]), "finish", "close"]


def test_a_function_that_cannot_be_opened_says_so_and_is_closed():
    calls = Shared()
    operator = FunctionOperator(
        function_head(Lives(calls, "open"), NUMBERS, is_connected=False), PLACE
    )

    with pytest.raises(UserCodeFailed, match=r"Lives.open failed at no row: OSError: no conn"):
        operator.restore(RestoredState())
    operator.close()

    assert calls[-1] == "close"


def test_a_function_that_was_never_opened_is_not_closed():
    calls = Shared()
    FunctionOperator(function_head(Lives(calls), NUMBERS, is_connected=False), PLACE).close()

    assert calls == []


def test_a_restarted_subtask_begins_with_the_object_that_the_user_made():
    head = function_head(Lives([]), NUMBERS, is_connected=False)
    first, second = FunctionOperator(head, PLACE), FunctionOperator(head, PLACE)
    first.restore(RestoredState())
    first.process(MAIN, rows(1))

    second.restore(RestoredState())

    assert numbers_of(second.finish()) == []


# Declarations


class Declares(ProcessFunction):
    """Declares or drops states by their names."""

    def __init__(self, *names, drops=()):
        self.names = names
        self.drops = drops

    def init(self, handle):
        self.states = [handle.getListState(name, "n long") for name in self.names]
        for name in self.drops:
            handle.deleteIfExists(name)

    def processBatch(self, batch):  # noqa: N802
        for state in self.states:
            state.appendArrow(batch)


def test_a_state_that_is_declared_no_more_is_refused_until_it_is_dropped():
    """C15: state without an owner is not lost by accident."""
    before = an_operator(Declares("old", "kept"))
    before.process(MAIN, rows(1))

    words = refusal(lambda: an_operator(Declares("kept"), left_by(before)))

    assert words == (
        "the checkpoint has a state 'old' that Declares.init does not declare: its rows have no "
        "place in the job. Remedy: declare it, or drop it with handle.deleteIfExists in init."
    )
    after = an_operator(Declares("kept", drops=["old"]), left_by(before))
    assert left_by(after).lists.keys() == {"kept"}


def test_a_state_that_is_new_begins_empty():
    before = an_operator(Declares("old"))

    after = an_operator(Declares("old", "new"), left_by(before))

    assert left_by(after).lists == {"old": [], "new": []}


def test_another_schema_at_restore_is_refused_with_the_difference():
    """S12."""

    class Retyped(Declares):
        def init(self, handle):
            handle.getListState("held", "n string")

    before = an_operator(Declares("held"))
    before.process(MAIN, rows(1))

    words = refusal(lambda: an_operator(Retyped(), left_by(before)))

    assert "n was bigint and is string. Remedy: declare it as it was" in words


class Late(Lives):
    """Asks for a state when it is too late."""

    def processBatch(self, batch):  # noqa: ARG002, N802
        self.handle.getListState("late", "n long")


def test_a_state_that_is_asked_for_after_init_is_refused():
    with pytest.raises(
        UserCodeFailed, match=r"declared in init, and that is over. Remedy: declare it"
    ):
        an_operator(Late(Shared())).process(MAIN, rows(1))


class Fickle(ProcessFunction):
    """Declares a state only where it runs."""

    declares = False

    def init(self, handle):
        if Fickle.declares:
            handle.getUnionListState("seen", "n long")


def test_a_function_declares_the_same_states_wherever_it_is(monkeypatch):
    """C14: the coordinator must know of union state."""
    head = function_head(Fickle(), NUMBERS, is_connected=False)
    monkeypatch.setattr(Fickle, "declares", True)

    words = refusal(lambda: FunctionOperator(head, PLACE).restore(RestoredState()))

    assert words.startswith("Fickle.init declares other states here than where the stream was")


# Two inputs


def test_the_broadcast_input_changes_what_the_other_reads():
    """S1."""
    operator = a_follower()
    operator.process(SIDE, rows(2, 3))

    assert numbers_of(operator.process(MAIN, rows(1, 2, 3, 4))) == [2, 3]


def test_broadcast_state_is_there_again_after_a_restore():
    operator = a_follower()
    operator.process(SIDE, rows(2))
    operator.process(SIDE, rows(2))

    after = a_follower(left_by(operator))

    assert numbers_of(after.process(MAIN, rows(1, 2))) == [2]
    assert numbers_of(after.finish()) == [1002]


class Meddles(Follows):
    """Changes broadcast state where only one subtask sees the row."""

    def processBatch(self, batch):  # noqa: ARG002, N802
        self.heard.updateValue((1,), (1,))


def test_the_main_input_cannot_change_broadcast_state():
    """S1: the failure says where it may be changed."""
    head = function_head(Meddles(), NUMBERS, is_connected=True)
    operator = FunctionOperator(FunctionHead(head.function, head.states, NUMBERS, (SIDE,)), PLACE)
    operator.restore(RestoredState())
    operator.process(SIDE, rows(1))

    with pytest.raises(UserCodeFailed, match="only processBroadcastBatch may change it"):
        operator.process(MAIN, rows(1))


def test_held_rows_are_given_out_at_the_end():
    operator = an_operator(Holds())
    operator.process(MAIN, rows(1, 2))

    assert list(operator.flush()) == []
    assert numbers_of(operator.finish()) == [1, 2]
