"""Records a driver's run in a file: its initial state, and every event.

Decisions depend on nothing else, so ``replay`` can run the file through the core, step by step, and
compare each decision with the recorded one. The file is written only on request: in tests, and to
find a bug.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from weir.core import attempt as attempts
from weir.core import coordinator as checkpoints
from weir.core.coordinator import EpochState
from weir.core.coordinator.coordinator_state import OwnCheckpoints, Unclaimed
from weir.core.enumerator import Splits
from weir.core.ids import OperatorId
from weir.core.invariants import violations
from weir.core.job_master import Action, Event, Job, step
from weir.core.policy import Policy
from weir.core.restarts import ExponentialDelay, FailureRate, FixedDelay, NoRestart, Strategy
from weir.core.stall_detector import StallDetector
from weir.core.topology import Topology
from weir.wire.json_codec import from_json, register, register_as, to_json


@dataclass(frozen=True, slots=True)
class InitialState:
    """The input of a driver's decisions before the first event."""

    policy: Policy
    topology: Topology
    strategy: Strategy
    epoch_state: EpochState
    splits: Mapping[OperatorId, Splits]
    without_in_flight: bool
    health: StallDetector

    def job(self) -> tuple[Job, tuple[Action, ...]]:
        state, commits = checkpoints.begin(self.policy, self.topology, self.epoch_state)
        attempt = attempts.initial(self.topology, self.strategy)
        job = Job(
            attempt,
            state,
            self.splits,
            without_in_flight=self.without_in_flight,
            health=self.health,
        )
        return job, commits


register(OwnCheckpoints, Unclaimed, NoRestart, FixedDelay, ExponentialDelay, FailureRate)
register_as("Beginning", InitialState, epoch_state="reign")


class Trace:
    """The file of one driver. It is flushed at each step, because a driver may be killed."""

    def __init__(self, path: Path, initial_state: InitialState) -> None:
        self._file: IO[str] = path.open("w", encoding="utf-8")
        self._write(to_json(initial_state))

    def on_step(self, event: Event, job: Job, actions: tuple[Action, ...]) -> None:
        del job
        self._write({"event": to_json(event), "actions": _names(actions)})

    def close(self) -> None:
        self._file.close()

    def _write(self, line: object) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def replay(lines: Iterator[str]) -> Iterator[str]:
    """Yield each difference between a trace and what the core decides; none if they agree."""
    initial_state = from_json(json.loads(next(lines)), object)
    assert isinstance(initial_state, InitialState), "the first line of a trace is the initial state"
    job, _ = initial_state.job()
    for number, line in enumerate(lines, start=2):
        if not line.endswith("\n"):
            return
        written = json.loads(line)
        event = from_json(written["event"], object)
        job, actions = step(job, event)  # type: ignore[arg-type]  # an event of the driver
        yield from (f"line {number}: {broken}" for broken in violations(job))
        if _names(actions) != written["actions"]:
            yield f"line {number}: {event} led to {written['actions']}, not {_names(actions)}"


def _names(actions: tuple[Action, ...]) -> list[str]:
    return [type(action).__name__ for action in actions]
