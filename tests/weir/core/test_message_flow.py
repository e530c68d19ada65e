"""Every event of the core is made somewhere, and every action of the core is handled."""

from pathlib import PurePosixPath
from textwrap import dedent
from typing import get_args

import pytest

from message_flow import Message, messages, never_handled, never_made
from source_tree import Module, modules
from weir.core import attempt as attempts
from weir.core import job_master
from weir.core.coordinator import actions, events

DRIVER = ("runtime/weir/driver/action_runner.py", "runtime/weir/driver/loop.py")
EVENTS = messages(get_args(job_master.Event))
ACTIONS = messages(get_args(job_master.Action))
INSIDE = messages(
    cls
    for cls in (*get_args(actions.Action), *get_args(attempts.AttemptAction))
    if cls not in get_args(job_master.Action)
)


def expect_none(found):
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_the_job_hears_every_event_of_its_parts():
    """An event that the union leaves out could not be checked below."""
    every = {*get_args(events.Event), *get_args(attempts.AttemptEvent)}

    assert every <= set(get_args(job_master.Event))


def test_every_event_is_made_outside_its_own_module():
    """What nothing can report need not be decided."""
    expect_none(never_made(EVENTS, modules("runtime/weir")))


def test_every_action_that_leaves_the_core_is_handled_by_the_driver():
    """A decision that nothing carries out is none."""
    expect_none(never_handled(ACTIONS, modules(*DRIVER)))


def test_every_action_between_the_parts_of_the_core_is_handled_by_the_job():
    """The attempt and the coordinator exchange events only there."""
    assert {action.name for action in INSIDE} >= {"OfferRestorePoint", "ConfirmStop", "Deploy"}
    expect_none(never_handled(INSIDE, modules("runtime/weir/core/job_master.py")))


# The search itself

LOST = Message("SlotForgotten", "weir.core.slots")
FORGET = Message("ForgetSlot", "weir.core.slots")
HOME = """
    class SlotForgotten: ...
    class ForgetSlot: ...
    def forget():
        return SlotForgotten()
"""


def a_module(text, path="runtime/weir/driver/thing.py"):
    return Module(PurePosixPath(path), dedent(text))


def home():
    return a_module(HOME, "runtime/weir/core/slots.py")


@pytest.mark.parametrize(
    "elsewhere",
    [
        "",
        "from weir.core.slots import SlotForgotten\nmatch x:\n    case SlotForgotten(): ...",
        "from weir.rest.slots import SlotForgotten\nSlotForgotten()",
        "from weir.core import slots\nslots.SlotFound()",
    ],
)
def test_an_event_that_nothing_makes_is_noticed(elsewhere):
    """Neither its own module nor a namesake counts."""
    assert len(never_made([LOST], [home(), a_module(elsewhere)])) == 1


@pytest.mark.parametrize(
    "maker",
    [
        "from weir.core.slots import SlotForgotten\ntell(SlotForgotten())",
        "from weir.core import slots as ours\ntell(ours.SlotForgotten())",
    ],
)
def test_an_event_that_is_made_passes(maker):
    """By its name or through its module."""
    assert never_made([LOST], [home(), a_module(maker)]) == []


@pytest.mark.parametrize(
    "elsewhere",
    [
        "match x:\n    case _: ...",
        "from weir.core.slots import ForgetSlot\nForgetSlot()",
        "from weir.core import slots\nmatch x:\n    case slots.FindSlot(): ...",
    ],
)
def test_an_action_that_nothing_handles_is_noticed(elsewhere):
    """A wildcard is no handler."""
    assert len(never_handled([FORGET], [a_module(elsewhere)])) == 1


@pytest.mark.parametrize(
    "handler",
    [
        "from weir.core import slots\nmatch x:\n    case slots.Find() | slots.ForgetSlot(): ...",
        "from weir.core.slots import ForgetSlot\nif isinstance(x, ForgetSlot): ...",
    ],
)
def test_an_action_that_is_handled_passes(handler):
    """In a match or by a plain question."""
    assert never_handled([FORGET], [a_module(handler)]) == []
