"""Carries out the commands of a story on a whole job: drivers, a log, manifests, log lines.

Each command is something that happened; the answer is what the driver of the moment decides, one
line for each decision. Storage is a dictionary that acts as the story describes, and fails
if the story is impossible: for example, if this driver creates an entry that another has.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from coordinated_job import READ, SUM, WRITE, Files, a_snapshot, a_transaction
from weir.core import attempt as attempts
from weir.core import coordinator as checkpoints
from weir.core import restore_decision, takeover
from weir.core.action_log import Line, describe_action, describe_placements
from weir.core.attempt import FailureCause
from weir.core.coordinator import events
from weir.core.coordinator.actions import CreateEntry, DeleteFiles
from weir.core.coordinator.pending_checkpoint import Collecting, Persisting
from weir.core.enumerator import Pool, Splits
from weir.core.ids import (
    AttemptId,
    CheckpointId,
    EdgeId,
    Millis,
    OperatorId,
    RequestId,
    SlotId,
    SplitId,
    SubtaskId,
)
from weir.core.job_master import Action, Event, Job, Launch, SplitWanted, step
from weir.core.lifecycle import JobStatus, SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.log_entries import Entry
from weir.core.policy import Policy, Retention
from weir.core.reasons import Reason
from weir.core.restarts import UNLIMITED, FixedDelay
from weir.core.snapshots import CheckpointKind, Manifest
from weir.core.topology import Edge, EdgeKind, Operator, Topology

JOB = "orders"
DIRECTORY = f"store/{JOB}"
RESTART_DELAY = 100

KINDS = {
    "checkpoint": CheckpointKind.CHECKPOINT,
    "full-checkpoint": CheckpointKind.FULL_CHECKPOINT,
    "savepoint": CheckpointKind.SAVEPOINT,
    "stop": CheckpointKind.SAVEPOINT_SUSPEND,
    "drain": CheckpointKind.SAVEPOINT_TERMINATE,
}
PHASES = {phase.name.lower(): phase for phase in events.Phase}
CAUSES = {"user-code": FailureCause.USER_CODE, "connection": FailureCause.CONNECTION}


@dataclass
class Driver:
    """One driver process and the job as it sees it."""

    name: str
    job: Job
    deletions: dict[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class StoryJob:
    """Everything that a story can change."""

    options: dict[str, str] = field(default_factory=dict)
    log: dict[int, Entry] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    drivers: dict[str, Driver] = field(default_factory=dict)
    driver: Driver | None = None

    def tell(self, command: str) -> list[str]:
        verb, *words = shlex.split(command)
        return getattr(self, f"on_{verb.replace('-', '_')}")(words)  # type: ignore[no-any-return]

    # The scene

    def on_job(self, words: Sequence[str]) -> list[str]:
        """The job's settings; the others have their defaults."""
        self.options.update(_options(words))
        return []

    def on_driver(self, words: Sequence[str]) -> list[str]:
        """A driver takes the job over, has the slots it needs, and finds nothing left open."""
        name, *more = words
        options = _options(more)
        restore_request = restore_decision.RestoreRequest(
            deployment=options.get("serves", "first submission"),
            path=options.get("from", ""),
            claims=options.get("claims") == "yes",
        )
        entries = tuple(sorted(self.log.items()))
        facts = restore_decision.Facts(entries, self.manifests)
        resolution = restore_decision.resolve(facts, restore_request, self._topology())
        if isinstance(resolution, restore_decision.Refuse):
            return [f"refused: {resolution.subject}: {resolution.reason}"]
        claim = takeover.claim(entries, resolution, restore_request, name)
        self.log[claim.index] = claim.entry
        epoch_state = takeover.epoch_state(claim, resolution, DIRECTORY)
        state, owed = checkpoints.begin(self._policy(), self._topology(), epoch_state)
        attempt = attempts.initial(self._topology(), FixedDelay(UNLIMITED, RESTART_DELAY))
        job = Job(attempt, state, self._splits(resolution), draw=0.0)
        self.driver = self.drivers[name] = Driver(name, job)
        lines = self._say([CreateEntry(claim.index, claim.entry), *owed])
        if isinstance(resolution, restore_decision.ReplayCommit):
            return lines + self._hear(events.StatusReported(JobStatus.STOPPED, 0.5))
        return lines + self._start()

    def on_as(self, words: Sequence[str]) -> list[str]:
        """From now on the story is about this driver."""
        self.driver = self.drivers[words[0]]
        return []

    def _start(self) -> list[str]:
        slots = [SlotId(chr(ord("a") + n)) for n in range(self._topology().slots_needed)]
        lines = self._hear(*(attempts.SlotRegistered(s, f"executor-{s}") for s in slots))
        lines += self._hear(attempts.JobStarted())
        lines += self.on_log(["free"])
        lines += self.on_running([str(s) for s in self._topology().subtasks])
        opened = self._job.coordinator.commits.resolving
        return lines + self._hear(*(events.TransactionsResolved(r.operation) for r in opened))

    def _topology(self) -> Topology:
        hooks = self.options.get("hook", "").split(",")
        pooled = [READ] if "splits" in self.options else []

        def operator(name: OperatorId, usual: int) -> Operator:
            return Operator(
                name,
                int(self.options.get(name, usual)),
                is_sink=name == WRITE,
                is_coordinated=name in hooks or name in pooled,
            )

        forward = self.options.get("edges") == "forward"
        first, second = (EdgeKind.FORWARD,) * 2 if forward else (EdgeKind.HASH, EdgeKind.GLOBAL)
        return Topology(
            (operator(READ, 1), operator(SUM, 2), operator(WRITE, 1)),
            (Edge(EdgeId("rows"), READ, SUM, first), Edge(EdgeId("sums"), SUM, WRITE, second)),
        )

    def _policy(self) -> Policy:
        def number(name: str, usual: int) -> int:
            return int(self.options.get(name, usual))

        return Policy(
            interval_ms=number("every", 0),
            min_pause_ms=number("pause", 0),
            timeout_ms=number("timeout", 600_000),
            max_concurrent=number("concurrent", 1),
            tolerable_failures=number("tolerates", 0),
            retained=number("keeps", 2),
            retention=Retention[self.options.get("retention", "RETAIN_ON_CANCELLATION")],
            incremental=self.options.get("incremental") == "yes",
            unaligned=self.options.get("unaligned") == "yes",
            managed=self.options.get("managed") == "yes",
        )

    def _splits(self, resolution: restore_decision.Resolution) -> dict[OperatorId, Splits]:
        if "splits" not in self.options:
            return {}
        free = tuple(SplitId(name) for name in self.options["splits"].split(","))
        if isinstance(resolution, restore_decision.RestoreFrom | restore_decision.ReplayCommit):
            for operator, state in resolution.manifest.coordinators:
                if operator == READ and isinstance(state, Pool):
                    free = state.free
        return {READ: Splits(free)}

    # Time, slots and subtasks

    def on_time(self, words: Sequence[str]) -> list[str]:
        return self._hear(TimePassed(Millis(int(words[0])), 0.0))

    def on_slot(self, words: Sequence[str]) -> list[str]:
        return self._hear(attempts.SlotRegistered(SlotId(words[0]), f"executor-{words[0]}"))

    def on_lost(self, words: Sequence[str]) -> list[str]:
        return self._hear(attempts.SlotLost(SlotId(words[0]), 0.5))

    def on_running(self, words: Sequence[str]) -> list[str]:
        return self._hear(*(SubtaskRunning(self._attempt(s), s) for s in self._subtasks(words)))

    def on_finished(self, words: Sequence[str]) -> list[str]:
        return self._hear(*(SubtaskFinished(self._attempt(s), s) for s in self._subtasks(words)))

    def on_end(self, words: Sequence[str]) -> list[str]:
        subtasks = self._subtasks(words)
        return self._hear(*(events.EndOfDataReached(self._attempt(s), s) for s in subtasks))

    def on_failed(self, words: Sequence[str]) -> list[str]:
        (subtask,) = self._subtasks(words[:1])
        cause = CAUSES[words[1]]
        return self._hear(attempts.SubtaskFailed(self._attempt(subtask), subtask, cause, 0.5))

    def on_split(self, words: Sequence[str]) -> list[str]:
        return self._hear(*(SplitWanted(self._attempt(s), s) for s in self._subtasks(words)))

    # Checkpoints

    def on_request(self, words: Sequence[str]) -> list[str]:
        name, kind, *place = words
        asked = events.CheckpointRequested(RequestId(name), KINDS[kind], "".join(place))
        return self._hear(asked)

    def on_cancel(self, _: Sequence[str]) -> list[str]:
        return self._hear(attempts.CancelRequested())

    def on_place(self, words: Sequence[str]) -> list[str]:
        checkpoint = CheckpointId(int(words[0]))
        if words[1] == "ready":
            return self._hear(events.LocationPrepared(checkpoint))
        return self._hear(events.LocationNotPrepared(checkpoint, " ".join(words[2:])))

    def on_hook(self, words: Sequence[str]) -> list[str]:
        operator, checkpoint = OperatorId(words[0]), CheckpointId(int(words[1]))
        if words[2] == "answers":
            return self._hear(events.OperatorSnapshotted(checkpoint, operator, "its state"))
        return self._hear(events.OperatorNotSnapshotted(checkpoint, operator, "it raised"))

    def on_ack(self, words: Sequence[str]) -> list[str]:
        """`ack 1 sum-0` or `ack 1 rest`; a snapshot may have more to it, see below."""
        checkpoint = CheckpointId(int(words[0]))
        everyone = words[1] == "rest"
        subtasks = self._awaited(checkpoint) if everyone else self._subtasks(words[1:2])
        return self._hear(*(self._ack(checkpoint, s, words[2:]) for s in subtasks))

    def _ack(
        self, checkpoint: CheckpointId, subtask: SubtaskId, words: Sequence[str]
    ) -> events.SubtaskAcked:
        """`shared=a,b`: files; `carries=2,3`: transactions; `at-end`: nothing left to process."""
        options = _options(words)
        own = f"{self._location(checkpoint)}/{subtask}"
        shared = tuple(path for path in options.get("shared", "").split(",") if path)
        snapshot = a_snapshot(
            checkpoint, subtask, Files((own,), shared), reached_end="at-end" in words
        )
        if "carries" in options:
            carried = [a_transaction(int(c), subtask) for c in options["carries"].split(",")]
            snapshot = replace(snapshot, transactions=tuple(carried))
        return events.SubtaskAcked(self._attempt(subtask), checkpoint, subtask, snapshot)

    def on_progress(self, words: Sequence[str]) -> list[str]:
        (subtask,) = self._subtasks(words[1:2])
        checkpoint, phase = CheckpointId(int(words[0])), PHASES[words[2]]
        progressed = events.SubtaskProgressed(self._attempt(subtask), checkpoint, subtask, phase)
        return self._hear(progressed)

    def on_decline(self, words: Sequence[str]) -> list[str]:
        (subtask,) = self._subtasks(words[1:2])
        checkpoint, reason = CheckpointId(int(words[0])), Reason[words[2]]
        cause = " ".join(words[3:])
        attempt = self._attempt(subtask)
        return self._hear(events.SubtaskDeclined(attempt, checkpoint, subtask, reason, cause))

    def on_fruitless(self, words: Sequence[str]) -> list[str]:
        """So many checkpoints are asked for, and each is declined."""
        lines: list[str] = []
        for _ in range(int(words[0])):
            checkpoint = str(self._job.coordinator.log.next_id)
            lines += self.on_request(["bob", "checkpoint"])
            lines += self.on_decline([checkpoint, "sum-0", "CHECKPOINT_DECLINED"])
        return lines

    def on_complete(self, words: Sequence[str]) -> list[str]:
        """Whatever is still missing to complete the checkpoint happens."""
        return [
            *self.on_ack([words[0], "rest", *words[1:]]),
            *self.on_manifest([words[0], "written"]),
            *self.on_entry(["created"]),
        ]

    # Storage and sinks

    def on_manifest(self, words: Sequence[str]) -> list[str]:
        checkpoint = CheckpointId(int(words[0]))
        if words[1] == "written":
            pending = self._job.coordinator.checkpoints.find(checkpoint)
            assert isinstance(pending, Persisting), "no manifest is being written"
            self.manifests[f"{pending.properties.location}/_metadata"] = pending.manifest
            return self._hear(events.ManifestWritten(checkpoint))
        if words[1] == "unknown":
            return self._hear(events.ManifestInDoubt(checkpoint))
        return self._hear(events.ManifestNotWritten(checkpoint, " ".join(words[2:])))

    def on_entry(self, words: Sequence[str]) -> list[str]:
        """The storage's answer about the entry that this driver is creating."""
        journal = self._job.coordinator.log
        index, (entry, *_) = journal.index, journal.writing
        there = self.log.get(index, entry)
        match words[0]:
            case "created":
                assert there == entry, f"entry {index} is another driver's"
                self.log[index] = entry
                return self._hear(events.EntryCreated(index))
            case "taken":
                assert there != entry, f"entry {index} is free"
                return self._hear(events.EntryTaken(index))
            case "unknown":
                return self._hear(events.EntryInDoubt(index))
            case _:
                return self._hear(events.EntryNotCreated(index, " ".join(words[1:])))

    def on_log(self, words: Sequence[str]) -> list[str]:
        """What this driver sees when it looks for a successor."""
        index = self._job.coordinator.log.index
        match words[0]:
            case "free":
                assert index not in self.log, f"entry {index} is another driver's"
                return self._hear(events.NoSuccessorSeen(index))
            case "taken":
                assert index in self.log, f"entry {index} is free"
                return self._hear(events.EntryTaken(index))
            case _:
                return self._hear(events.SuccessorUnknown(index))

    def on_deletion(self, words: Sequence[str]) -> list[str]:
        ticket = int(words[0])
        if words[1] != "done":
            return self._hear(events.FilesNotDeleted(ticket))
        assert self.driver is not None, "there is no driver"
        for path in self.driver.deletions[ticket]:
            self.manifests.pop(path, None)
        return self._hear(events.FilesDeleted(ticket))

    def on_commit(self, words: Sequence[str]) -> list[str]:
        sink, number = OperatorId(words[0]), int(words[1])
        if words[2] == "confirmed":
            return self._hear(events.CommitConfirmed(sink, number))
        return self._hear(events.CommitInDoubt(sink, number))

    def on_resolution(self, words: Sequence[str]) -> list[str]:
        ticket = int(words[0])
        if words[1] == "done":
            return self._hear(events.TransactionsResolved(ticket))
        return self._hear(events.TransactionsUnresolved(ticket))

    # Within

    @property
    def _job(self) -> Job:
        assert self.driver is not None, "there is no driver"
        return self.driver.job

    def _hear(self, *describe_event: Event) -> list[str]:
        lines: list[str] = []
        for event in describe_event:
            assert self.driver is not None, "there is no driver"
            self.driver.job, said = step(self.driver.job, event)
            lines += self._say(said)
        return lines

    def _say(self, actions: Iterable[Action]) -> list[str]:
        lines: list[str] = []
        for action in actions:
            lines.append(_shown(describe_action(action, JOB)))
            if isinstance(action, Launch):
                lines.append(_shown(describe_placements(action)))
            if isinstance(action, DeleteFiles):
                assert self.driver is not None, "there is no driver"
                self.driver.deletions[action.operation] = action.paths
        return lines

    def _subtasks(self, words: Iterable[str]) -> list[SubtaskId]:
        named = {str(subtask): subtask for subtask in self._topology().subtasks}
        return [named[word] for word in words]

    def _attempt(self, subtask: SubtaskId) -> AttemptId:
        return self._job.attempt.graph.executions[subtask].attempt

    def _awaited(self, checkpoint: CheckpointId) -> list[SubtaskId]:
        pending = self._job.coordinator.checkpoints.find(checkpoint)
        assert isinstance(pending, Collecting), f"no ack is awaited at {checkpoint}"
        return sorted(pending.awaiting)

    def _location(self, checkpoint: CheckpointId) -> str:
        pending = self._job.coordinator.checkpoints.find(checkpoint)
        return pending.properties.location if pending else f"{DIRECTORY}/chk-{checkpoint}"


def _options(words: Iterable[str]) -> dict[str, str]:
    pairs = (word.partition("=") for word in words)
    return {name: value for name, equals, value in pairs if equals}


def _shown(line: Line) -> str:
    return f"{line.level:<7} {line.text}"
