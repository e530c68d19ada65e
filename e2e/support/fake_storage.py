"""The durable storage of a fake job: its completed checkpoints, and the invariants of restores.

A driver restores only what is here. A driver whose restore point does not exist, that starts from
nothing or from an old state without a request, or that runs beside another, violates a guarantee of
the operator; the violation is recorded, and the test that reads it fails.
"""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Completion:
    """A checkpoint or savepoint that is complete."""

    number: int
    path: str
    deployment: str
    """Of which it is the state."""


@dataclass(frozen=True, slots=True)
class Start:
    """The restore point of a driver."""

    deployment: str
    path: str | None = None
    lowest: int = 0
    fresh: bool = False


class MissingObject(Exception):
    """The restore point of a driver does not exist."""


@dataclass(slots=True)
class PretendStorage:
    """Of one job, shared by its drivers."""

    directory: str
    completed: list[Completion] = field(default_factory=list)
    alive: set[int] = field(default_factory=set)
    """Attempts whose drivers live."""
    starts: list[Completion | None] = field(default_factory=list)
    """What each driver has restored, in their order."""
    savepoints: Counter[str] = field(default_factory=Counter)
    """How many were taken for each key."""
    broken: list[str] = field(default_factory=list)
    """Promises that were broken."""

    @property
    def newest(self) -> Completion | None:
        return self.completed[-1] if self.completed else None

    def complete(self, deployment: str, path: str = "") -> Completion:
        number = 1 if self.newest is None else self.newest.number + 1
        done = Completion(number, path or f"{self.directory}/chk-{number}", deployment)
        self.completed.append(done)
        return done

    def take_savepoint(self, key: str, deployment: str, directory: str) -> Completion:
        self.savepoints[key] += 1
        if self.savepoints[key] > 1:
            self.broken.append(f"a second savepoint was taken for {key}")
        number = 1 if self.newest is None else self.newest.number + 1
        return self.complete(deployment, f"{directory}/savepoint-{number}")

    def begin(self, attempt: int, start: Start) -> Completion | None:
        """A driver begins to live and restores; what it finds is what the real one would."""
        if self.alive:
            self.broken.append(f"driver {attempt} lives beside {sorted(self.alive)}")
        self.alive.add(attempt)
        restored = self._restored(attempt, start)
        if restored != self.newest:
            self.broken.append(f"driver {attempt} lost state: it has {restored}, not {self.newest}")
        self.starts.append(restored)
        return restored

    def end(self, attempt: int) -> None:
        self.alive.discard(attempt)

    def _restored(self, attempt: int, start: Start) -> Completion | None:
        """Within a deployment its newest checkpoint; at its beginning its restore point."""
        newest = self.newest
        if newest is not None and newest.deployment == start.deployment:
            return newest
        if start.fresh:
            return None
        if start.path is not None:
            return self._at(attempt, start.path)
        if start.lowest > (0 if newest is None else newest.number):
            self.broken.append(f"driver {attempt} needs checkpoint {start.lowest} of {newest}")
            raise MissingObject(f"there is no checkpoint {start.lowest}")
        return newest

    def _at(self, attempt: int, path: str) -> Completion:
        for done in self.completed:
            if done.path == path:
                return done
        self.broken.append(f"driver {attempt} was started from {path}, which does not exist")
        raise MissingObject(f"there is nothing at {path}")
