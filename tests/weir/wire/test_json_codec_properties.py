"""Every message of the core survives the wire, with any content."""

from enum import StrEnum
from types import UnionType
from typing import NewType, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir.core import attempt, barriers, enumerator, job_master, lifecycle, log_entries, snapshots
from weir.core.coordinator import actions, events
from weir.core.ids import ChannelId, SubtaskId
from weir.core.rescale import StateAssignment
from weir.core.snapshots import Manifest
from weir.wire.json_codec import dumps, from_json, loads, to_json

PLAIN = {
    str: st.text(max_size=8),
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    bytes: st.binary(max_size=8),
    type(None): st.none(),
}
SUBTASKS = st.builds(SubtaskId, PLAIN[str], PLAIN[int])
LEAVES = st.one_of(*PLAIN.values(), SUBTASKS, st.sampled_from(snapshots.Side))
ANYTHING = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


def values_of(declared):
    """Values of a declared type, from the annotations that the codec works from too."""
    if isinstance(declared, NewType):
        return values_of(declared.__supertype__)
    if declared is object:
        return ANYTHING
    if declared in PLAIN:
        return PLAIN[declared]
    if get_origin(declared) is tuple:
        return tuples_of(*get_args(declared))
    if isinstance(declared, UnionType):
        return st.one_of(*(values_of(member) for member in get_args(declared)))
    if issubclass(declared, StrEnum):
        return st.sampled_from(declared)
    hints = get_type_hints(declared)
    return st.builds(declared, **{name: values_of(hint) for name, hint in hints.items()})


def tuples_of(first, *others):
    if others == (Ellipsis,):
        return st.lists(values_of(first), max_size=2).map(tuple)
    return st.tuples(values_of(first), *(values_of(other) for other in others))


MESSAGES = [
    *get_args(events.Event),
    *get_args(attempt.AttemptEvent),
    *get_args(attempt.AttemptAction),
    *get_args(actions.Action),
    *get_args(barriers.Marker),
    *get_args(log_entries.Entry),
    enumerator.AssignSplit,
    enumerator.NoSplitsYet,
    enumerator.NoMoreSplits,
    enumerator.Splits,
    job_master.SplitWanted,
    job_master.Launch,
    lifecycle.TimePassed,
    StateAssignment,
    ChannelId,
    SubtaskId,
]


@pytest.mark.parametrize("message", sorted(set(MESSAGES), key=lambda cls: cls.__name__))
@settings(max_examples=8)
@given(data=st.data())
def test_every_message_comes_back_as_it_was(message, data):
    """C4, C7: an ack, an order or an entry means the same on both ends."""
    said = data.draw(values_of(message))

    assert loads(dumps(said)) == said
    assert from_json(to_json(said), message) == said


@settings(max_examples=30)
@given(values_of(Manifest))
def test_every_manifest_comes_back_as_it_was(manifest):
    """S8: with every handle in it."""
    assert loads(dumps(manifest)) == manifest


@given(ANYTHING)
def test_an_open_value_comes_back_with_its_types(value):
    """C4: a tuple is no list, and a number no truth."""
    assert repr(loads(dumps(value))) == repr(value)
