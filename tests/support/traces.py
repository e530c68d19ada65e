"""Follows the traces that the drivers of a job write, while they write them.

A trace is the only record of what a driver has decided so far, so tests synchronise by it;
afterwards each is replayed through the core, which must decide the same again.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weir.core.coordinator.actions import RestoreManifest, WriteManifest
from weir.core.job_master import Action, Launch, step
from weir.core.snapshots import Manifest
from weir.driver.trace import InitialState, replay
from weir.wire.json_codec import from_json


@dataclass(frozen=True, slots=True)
class Restoration:
    """Subtasks that were launched with what a checkpoint has for them."""

    checkpoint: int
    old: int
    """The parallelism of the checkpoint."""
    new: int
    overtaken: int
    """How many files of overtaken rows they got, or got a share of."""

    @classmethod
    def by(cls, launch: Launch, manifest: Manifest, parallelism: int) -> "Restoration":
        heirs = [state_assignment for _, _, state_assignment in launch.placements]
        overtaken = sum(len(heir.in_flight) for heir in heirs)
        return cls(manifest.checkpoint, manifest.widths[0].parallelism, parallelism, overtaken)


@dataclass
class TraceFile:
    """One driver's trace, read on from where it was read to."""

    path: Path
    completed: int = 0
    slots: set[str] = field(default_factory=set)
    """Registered and not lost since."""
    launches: int = 0
    _read_to: int = 0

    @property
    def epoch(self) -> int:
        return int(self.path.stem.rpartition("-")[2])

    def read_on(self) -> None:
        with self.path.open("rb") as file:
            file.seek(self._read_to)
            whole, _, _ = file.read().rpartition(b"\n")
        self._read_to += len(whole) + 1 if whole else 0
        for line in whole.splitlines():
            self._note(line)

    def _note(self, line: bytes) -> None:
        self.completed += b'"ReportCompleted"' in line
        self.launches += b'"Launch"' in line
        if b'"SlotRegistered"' in line:
            self.slots.add(json.loads(line)["event"]["slot"])
        elif b'"SlotLost"' in line:
            self.slots.discard(json.loads(line)["event"]["slot"])

    def findings(self) -> list[str]:
        with self.path.open(encoding="utf-8") as lines:
            return [f"{self.path.name} {finding}" for finding in replay(iter(lines))]

    def restorations(self) -> Iterator[Restoration]:
        """Everything that this driver launched from a checkpoint."""
        parallelism = self._initial_state().topology.operators[0].parallelism
        for action in self._actions():
            if isinstance(action, Launch) and isinstance(action.restore, RestoreManifest):
                yield Restoration.by(action, action.restore.manifest, parallelism)

    def manifests(self) -> Iterator[Manifest]:
        """Everything that all subtasks of this driver have acked."""
        return (a.manifest for a in self._actions() if isinstance(a, WriteManifest))

    def _initial_state(self) -> InitialState:
        with self.path.open(encoding="utf-8") as lines:
            initial_state = from_json(json.loads(next(lines)), object)
        assert isinstance(initial_state, InitialState), "the first line is the initial state"
        return initial_state

    def _actions(self) -> Iterator[Action]:
        """What the core decides again."""
        job, _ = self._initial_state().job()
        with self.path.open(encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                if not line.endswith("\n"):
                    return
                event = from_json(json.loads(line)["event"], object)
                job, actions = step(job, event)  # type: ignore[arg-type]  # an event of the driver
                yield from actions


@dataclass
class Traces:
    """All drivers of one job."""

    directory: Path
    _known: dict[Path, TraceFile] = field(default_factory=dict)

    def all(self) -> list[TraceFile]:
        """Oldest epoch first."""
        for path in self.directory.glob("*.jsonl"):
            self._known.setdefault(path, TraceFile(path)).read_on()
        return sorted(self._known.values(), key=lambda trace: trace.epoch)

    @property
    def completed(self) -> int:
        """How many checkpoints are complete, of all drivers together."""
        return sum(trace.completed for trace in self.all())

    def newest(self) -> TraceFile | None:
        return max(self.all(), key=lambda trace: trace.epoch, default=None)

    def restorations(self) -> list[Restoration]:
        return [restoration for trace in self.all() for restoration in trace.restorations()]

    def manifests(self) -> list[Manifest]:
        return [manifest for trace in self.all() for manifest in trace.manifests()]

    def findings(self) -> list[str]:
        """Everything that a driver did and the core would not have decided."""
        return [finding for trace in self.all() for finding in trace.findings()]
