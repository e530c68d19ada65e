"""Tells a schedule's history in words that a person can follow.

What was recorded are the events and actions themselves; they are put into words only when somebody
wants to read them, that is, when a schedule has failed or is being watched.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulation.simulation import Simulation

LINES = 120
WIDTH = 180


def story(simulation: "Simulation") -> str:
    scenario = simulation.scenario
    widths = ", ".join(f"{name} ×{width}" for name, width in scenario.widths)
    head = [
        f"seed {scenario.seed}: {scenario.shape.name} ({widths})",
        f"  {scenario.policy}",
        f"  {scenario.strategy}",
        f"  {scenario.chances}",
    ]
    told = [line(*entry) for entry in list(simulation.world.story)[-LINES:]]
    return "\n".join([*head, *told, ""])


def line(now: int, who: str, what: object) -> str:
    text = str(what)
    if len(text) > WIDTH:
        text = text[: WIDTH - 1] + "…"
    return f"{now:>6} ms  {who:<10} {text}"
