"""Writes a schedule's history as text.

The record holds the events, actions and orders themselves; they become text only when a schedule
has failed. Events and actions of the driver read as they do in a real driver's log.
"""

from collections.abc import Iterator
from typing import get_args

from simulation.scenario import Scenario
from simulation.world import World
from weir.core.action_log import describe_action
from weir.core.barriers import Barrier, CancelMarker, Watermark
from weir.core.event_log import describe_event
from weir.core.job_master import Action, Event
from weir.core.lifecycle import TimePassed
from weir.core.task import Ack, Broadcast, Capture, Decline, Grant, PersistInFlight, Transmit

LINES = 150
WIDTH = 160


def history_text(scenario: Scenario, world: World) -> str:
    widths = ", ".join(f"{name} ×{width}" for name, width in scenario.widths)
    head = [
        f"seed {scenario.seed}: {scenario.shape.name} ({widths})",
        f"  {scenario.policy}",
        f"  {scenario.strategy}",
        f"  {scenario.chances}",
    ]
    return "\n".join([*head, *list(_lines(world))[-LINES:], ""])


def _lines(world: World) -> Iterator[str]:
    for now, who, what in world.history:
        if isinstance(what, TimePassed | Grant):
            continue
        text = _words(what)
        shown = text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
        yield f"{now:>6} ms  {who:<10} {shown}"


def _words(what: object) -> str:
    if isinstance(what, get_args(Event)):
        return f"event: {describe_event(what, job='sim').text}"
    if isinstance(what, get_args(Action)):
        return f"action: {describe_action(what, job='sim').text}"
    return _order(what)


def _order(what: object) -> str:
    match what:
        case Transmit(channel, element):
            return f"sends {_element(element)} on {channel}"
        case Broadcast(barrier):
            return f"forwards {_element(barrier)}"
        case Capture(barrier):
            return f"captures its state for checkpoint {barrier.checkpoint}"
        case PersistInFlight(checkpoint, rows):
            caught = ", ".join(f"{len(r)} {side} batches of {c}" for c, side, r in rows)
            return f"saves what barrier {checkpoint} overtook: {caught}"
        case Ack(checkpoint):
            return f"acks checkpoint {checkpoint}"
        case Decline(checkpoint, reason):
            return f"declines checkpoint {checkpoint}: {reason}"
        case _:
            return str(what)


def _element(element: object) -> str:
    match element:
        case Barrier(checkpoint, kind, alignment):
            return f"barrier {checkpoint} ({kind}, {alignment})"
        case CancelMarker(checkpoint):
            return f"the cancel marker of {checkpoint}"
        case Watermark(time):
            return f"watermark {time}"
        case tuple():
            return "rows " + ", ".join(f"{row[0]}/{row[1]}" for row in element)
        case _:
            return type(element).__name__
