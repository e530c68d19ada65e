"""A value that is written as JSON is read back as the same value, or refused by name."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import pytest

from weir.core.coordinator.actions import (
    CompleteRequest,
    RequestFailed,
    RequestSucceeded,
    SendToSubtask,
)
from weir.core.coordinator.events import OperatorEventSent, SubtaskAcked
from weir.core.enumerator import AssignSplit
from weir.core.ids import SubtaskId
from weir.core.lifecycle import SubtaskRunning, TimePassed
from weir.core.log_entries import Entry, IdsReserved
from weir.core.reasons import Reason
from weir.core.rescale import StateAssignment
from weir.core.snapshots import CoordinatorSnapshot, StateFile, SubtaskSnapshot
from weir.wire.json_codec import (
    Undecodable,
    Unencodable,
    dumps,
    from_json,
    loads,
    register,
    to_json,
)

SUBTASK = SubtaskId("sum", 3)


def spoken(message):
    return loads(dumps(message))


def test_a_message_names_its_class_and_nothing_that_is_declared():
    """S8: a person can read it."""
    running = json.loads(dumps(SubtaskRunning(7, SUBTASK)))

    assert running == {
        "$": "SubtaskRunning",
        "attempt": 7,
        "subtask": {"operator": "sum", "index": 3},
    }


def test_a_choice_between_classes_is_tagged():
    assert (
        to_json(CompleteRequest("r", RequestSucceeded(4, "here")))["outcome"]["$"]
        == "RequestSucceeded"
    )
    assert (
        spoken(CompleteRequest("r", RequestFailed(Reason.TASK_FAILURE, "why"))).outcome.message
        == "why"
    )


def test_an_entry_is_read_as_one_of_its_union():
    entry = IdsReserved(epoch=1, driver="a", ids_until=16)

    assert from_json(to_json(entry), Entry) == entry


def test_a_class_outside_the_union_is_refused():
    with pytest.raises(Undecodable, match=r"expected EpochTaken \| .*, found TimePassed"):
        from_json(to_json(TimePassed(1)), Entry)


@pytest.mark.parametrize(
    "message",
    [
        None,
        "text",
        0,
        1.5,
        True,
        float("inf"),
        b"\x00\xff",
        (),
        ((1, "a"), (False, (2.0, None))),
        AssignSplit("part-0"),
        (SUBTASK, Reason.TASK_FAILURE),
        {SUBTASK: (1, 2), "plain": {}},
    ],
)
def test_an_operators_message_may_be_any_plain_value(message):
    """C4: splits and other messages of operator coordinators."""
    spoke = spoken(OperatorEventSent("source", SUBTASK, message))

    assert spoke.message == message
    assert type(spoke.message) is type(message)


def test_types_that_compare_equal_stay_apart():
    """C1: what was restored is what was taken."""
    state = spoken(CoordinatorSnapshot("source", (1, 1.0, True))).state

    assert [type(item) for item in state] == [int, float, bool]


def test_a_value_without_a_form_is_refused_where_it_is_said():
    with pytest.raises(Unencodable, match="list has no JSON form: use plain values"):
        dumps(SendToSubtask("source", (SUBTASK, 1), [1, 2]))


def test_a_file_written_before_a_field_existed_is_read_with_its_default():
    """S8: readable by later releases."""
    assert from_json({"path": "a", "bytes": 3}, StateFile) == StateFile("a", 3)


def test_inline_state_keeps_its_bytes():
    """S7: small state travels in the manifest."""
    file = StateFile(path="", bytes=2, checksum="c", content=b"\x00\xfe")

    assert from_json(json.loads(json.dumps(to_json(file))), StateFile) == file


def test_an_optional_field_is_null_or_the_value():
    share = from_json(to_json(StateAssignment(SUBTASK)), StateAssignment)

    assert share == StateAssignment(SUBTASK)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (b'{"$":"Bomb"}', "no class of the catalogue is called 'Bomb'"),
        (b"{}", "no class of the catalogue is called None"),
        (b'{"$":["list"]}', "no class of the catalogue is called"),
        (b'{"$":"TimePassed"}', "TimePassed needs a field 'now'"),
        (b'{"$":"TimePassed","now":1,"later":2}', "TimePassed has no field 'later'"),
        (b'{"$":"TimePassed","now":"1"}', 'TimePassed.now: expected int, found "1"'),
        (b'{"$":"TimePassed","now":true}', "TimePassed.now: expected int, found true"),
        (b'{"$":"TimePassed","now":1,"draw":"x"}', "TimePassed.draw: expected float"),
        (b'{"$":"TimePassed","now":NaN}', "this is not JSON: NaN"),
        (b'{"$":"SubtaskRunning","attempt":1,"subtask":[1]}', "subtask: expected SubtaskId"),
        (
            b'{"$":"SubtaskRunning","attempt":1,"subtask":{"operator":"a","index":1.5}}',
            r"SubtaskRunning.subtask: SubtaskId.index: expected int, found 1.5",
        ),
        (b'{"$":"Reason","value":"boredom"}', 'expected Reason, found "boredom"'),
        (b'{"$":"Reason","values":1}', "Reason needs a field 'value' and no other"),
        (b'{"$":"bytes","value":"?"}', "expected base64"),
        (b'{"$":"bytes","value":1}', "expected base64, found 1"),
        (b'{"$":"dict","value":[[{"$":"dict","value":[]},1]]}', "a list of pairs with plain keys"),
        (b'{"$":"dict","value":[[1]]}', "expected a list of 2, found list"),
        (b'{"$":"dict","value":3}', "expected a list, found 3"),
        (b'{"$":"CheckpointLogged","epoch":1', "this is not JSON"),
        (b"\xff\xfe", "this is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'[[[{"$":"NoMoreSplits","value":1}]]]', "NoMoreSplits has no field 'value'"),
    ],
)
def test_what_is_not_a_message_is_refused_by_name(said, complaint):
    """X2: nothing that comes over a network is believed or run."""
    with pytest.raises(Undecodable, match=complaint):
        loads(said)


def test_a_value_of_another_class_than_expected_is_refused():
    with pytest.raises(Undecodable, match="expected SubtaskSnapshot, found TimePassed"):
        from_json(to_json(TimePassed(1)), SubtaskSnapshot)


def test_a_value_nested_beyond_reason_is_refused():
    nested = []
    for _ in range(100_000):
        nested = [nested]

    with pytest.raises(Undecodable, match="nested too deeply"):
        from_json(nested, object)


# Messages of other layers


class Tone(StrEnum):
    CALM = "calm"


class Note(NamedTuple):
    text: str
    tone: Tone = Tone.CALM


@dataclass(frozen=True, slots=True)
class Letter:
    notes: tuple[Note, ...]
    counts: dict[SubtaskId, int]
    reply: "Letter | None" = None


@dataclass
class Draft:
    text: str


def test_other_layers_add_their_messages():
    register(Letter)
    letter = Letter((Note("hello"),), {SUBTASK: 2}, Letter((), {}))

    assert spoken(letter) == letter
    assert spoken(letter).reply == Letter((), {})


def test_registering_a_class_again_changes_nothing():
    register(Note, Tone)
    register(Note, Tone)

    assert spoken((Note("a"), Tone.CALM)) == (Note("a"), Tone.CALM)


def test_two_classes_of_one_name_are_refused():
    other = dataclass(frozen=True)(type("SubtaskAcked", (), {}))

    assert other.__name__ == SubtaskAcked.__name__
    with pytest.raises(AssertionError, match=r"two classes .* are called SubtaskAcked"):
        register(other)


def test_what_can_change_is_not_a_message():
    with pytest.raises(AssertionError, match="Draft is neither frozen dataclass"):
        register(Draft)


def test_a_class_with_a_field_that_cannot_be_written_is_refused_when_it_is_registered():
    cls = dataclass(frozen=True)(type("Odd", (), {"__annotations__": {"numbers": list[int]}}))

    with pytest.raises(AssertionError, match="has no JSON form"):
        register(cls)
