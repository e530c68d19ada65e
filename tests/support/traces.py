"""Follows the traces that the drivers of a job write, while they write them.

A trace is the one place that tells what a driver has decided so far, so tests synchronise by it;
afterwards each is replayed through the core, which must decide the same again.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from weir.driver.trace import replay


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

    def findings(self) -> list[str]:
        """Everything that a driver did and the core would not have decided."""
        return [finding for trace in self.all() for finding in trace.findings()]
