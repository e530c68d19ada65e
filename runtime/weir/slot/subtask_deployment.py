"""Deploys subtasks: makes the runner of each, and reads the state that it restores.

The mailbox's thread makes the operator, which belongs to it. State is read on other threads, since
that can take long, and not on those that may still upload for an attempt that is over. A subtask
that cannot be made, or whose state cannot be read, ends in ``RestoreFailed``, which the mailbox
reports like any other failure.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

from weir.core.alignment import Aligner, Tracker
from weir.core.attempt import FailureCause
from weir.core.barriers import EndOfInput
from weir.core.channels import Inbox, Outbox
from weir.core.ids import RECOVERED, ChannelId, CheckpointId, EdgeId, Millis, SubtaskId
from weir.core.key_groups import range_of
from weir.core.policy import Mode
from weir.core.rescale import StateAssignment
from weir.core.snapshots import StateFile
from weir.core.task import Task
from weir.core.topology import Topology
from weir.dataflow.physical import JobGraph
from weir.exchange import Run
from weir.exchange.routing import Router
from weir.ports.keyed_state import BackendFactory
from weir.ports.operators import Batch, Operator, RestoredState, TaskInfo
from weir.ports.user_code_errors import describe_error, error_type, is_of_user_code
from weir.slot.effects import FailSubtask
from weir.slot.event_time import EventTime
from weir.slot.file_storage import FileStorage
from weir.slot.merged_files import MergedFiles
from weir.slot.operator_factory import operator_for
from weir.slot.pipeline import Pipeline
from weir.slot.relay import Stateless
from weir.slot.row_format import ArrowFormat, RowFormat
from weir.slot.snapshot_uploads import SnapshotUploads, UploadMemory
from weir.slot.snapshot_writer import SnapshotWriter
from weir.slot.state_log import StateLog
from weir.slot.subtask_runner import SubtaskRunner
from weir.wire.control_messages import DeploySubtasks

CREDIT = 4
"""Batches that a sender may have on their way to one receiver."""


@dataclass(frozen=True, slots=True)
class SubtaskRestored:
    """Mail: the state of a subtask has been read."""

    runner: SubtaskRunner
    state: RestoredState
    replays: dict[EdgeId, list[Batch]]
    was_finished: bool

    def fill_inboxes(self) -> None:
        """In-flight data of the restored checkpoint comes before anything new."""
        for channel, inbox in self.runner.task.inboxes.items():
            if channel.sender == RECOVERED:
                inbox.queue.extend(self.replays.get(channel.edge, ()))
                inbox.queue.append(EndOfInput())


@dataclass(frozen=True, slots=True)
class RestoreFailed:
    """Mail: a subtask could not be made, or its state could not be read."""

    runner: SubtaskRunner
    failure: FailSubtask


PostMail = Callable[[SubtaskRestored | RestoreFailed], None]
"""Hands mail to the mailbox, from any thread."""


@dataclass(frozen=True, slots=True)
class AlignmentSettings:
    """How the job wants its barriers treated."""

    mode: Mode
    declines_after_end: bool


@dataclass(frozen=True, slots=True)
class SlotExecutors:
    """The threads beside the mailbox."""

    uploading: Executor
    reading: Executor
    materializing: Executor
    """Whole states of changelogs, which must not hold up what checkpoints wait for."""


class SubtaskFactory(Protocol):
    """Makes the parts of a subtask that depend on the job."""

    @property
    def topology(self) -> Topology: ...
    def keys(self, edge: EdgeId) -> Sequence[str]:
        """The columns by which rows of a hashed edge are dealt; empty for other edges."""

    def operator(self, place: TaskInfo) -> Operator: ...
    def runner(self, run: Run, operator: Operator, writer: SnapshotWriter) -> SubtaskRunner: ...


@dataclass(frozen=True, slots=True)
class StageFactory:
    """Makes subtasks from the stages of a job's graph."""

    graph: JobGraph
    settings: AlignmentSettings
    backends: BackendFactory

    @property
    def topology(self) -> Topology:
        return self.graph.topology

    def keys(self, edge: EdgeId) -> Sequence[str]:
        return tuple(self.graph.keys.get(edge, ()))

    def operator(self, place: TaskInfo) -> Operator:
        return operator_for(self.graph.by_id[place.subtask.operator], place, self.backends)

    def runner(self, run: Run, operator: Operator, writer: SnapshotWriter) -> SubtaskRunner:
        subtask, topology = writer.subtask, self.topology
        routers = tuple(
            Router(topology, edge, subtask.index, tuple(self.keys(edge.id)))
            for edge in topology.edges
            if edge.source == subtask.operator
        )
        return SubtaskRunner(
            run=run,
            task=make_task(subtask, topology, self.settings, CREDIT),
            operator=operator,
            pipeline=Pipeline(self.graph.by_id[subtask.operator].steps),
            routers=routers,
            writer=writer,
            format=writer.format,
            time=EventTime(topology.inputs[subtask]),
        )


def make_task(
    subtask: SubtaskId,
    topology: Topology,
    settings: AlignmentSettings,
    credit: int,
    make: Callable[..., Task] = Task,
) -> Task:
    """With one more channel for each edge, which brings back its in-flight data."""
    inputs = topology.inputs[subtask]
    recovered = {ChannelId(c.edge, RECOVERED, c.receiver): 0 for c in inputs}
    channels = (*recovered, *inputs)
    machine = Aligner if settings.mode is Mode.EXACTLY_ONCE else Tracker
    return make(
        subtask,
        machine(channels, declines_on_end=settings.declines_after_end),
        {channel: Inbox(channel) for channel in channels},
        {channel: Outbox(channel, credit) for channel in topology.outputs[subtask]},
    )


class SubtaskDeployer:
    """Deploys the subtasks of one slot."""

    def __init__(
        self,
        factory: SubtaskFactory,
        storage: FileStorage,
        executors: SlotExecutors,
        *,
        row_format: RowFormat | None = None,
        memory: UploadMemory | None = None,
    ) -> None:
        self._factory = factory
        self._storage = storage
        self.executors = executors
        self._format = row_format or ArrowFormat()
        self._memory = memory or UploadMemory()
        self.merged: MergedFiles | None = None

    @property
    def topology(self) -> Topology:
        return self._factory.topology

    def connect(self, post: Callable[[object], None], now: Callable[[], Millis]) -> None:
        """The mailbox of the slot, by its clock, takes what merged files bring about."""
        if self._storage.merging is not None:
            self.merged = MergedFiles(self._storage, self.executors.uploading, post, now)

    def deploy(
        self,
        deploy: DeploySubtasks,
        state_assignment: StateAssignment,
        clock: Callable[[], Millis],
        post: PostMail,
    ) -> None:
        """Ends in one mail: the subtask is restored, or it is not."""
        run = (int(deploy.epoch), int(deploy.attempt))
        subtask = state_assignment.subtask
        policy = self._storage.changelog
        log = StateLog(policy, self._format) if policy is not None else None
        uploads = SnapshotUploads(subtask, self._memory, log)
        writer = SnapshotWriter(subtask, run, self._storage, self._format, uploads, self.merged)
        try:
            operator = self._factory.operator(self._place(subtask, run, clock))
        except BaseException as failure:  # noqa: BLE001 - connectors, user code, native code
            runner = self._factory.runner(run, Stateless(), writer)
            reason = f"{subtask.operator} could not be set up: {describe_error(failure)}"
            is_users = is_of_user_code(failure)
            cause = FailureCause.USER_CODE if is_users else FailureCause.OPERATOR
            post(RestoreFailed(runner, FailSubtask(cause, reason, error_type(failure))))
            return
        runner = self._factory.runner(run, operator, writer)
        self.executors.reading.submit(self._read, runner, state_assignment, deploy.restored, post)

    def _place(self, subtask: SubtaskId, run: Run, clock: Callable[[], Millis]) -> TaskInfo:
        operator = self.topology.by_id[subtask.operator]
        epoch, attempt = run
        return TaskInfo(
            subtask,
            operator.parallelism,
            operator.max_parallelism,
            epoch,
            attempt,
            clock,
            is_incremental=self._storage.is_incremental or self._storage.changelog is not None,
            is_logged=self._storage.changelog is not None,
        )

    # -- beside the mailbox

    def _read(
        self,
        runner: SubtaskRunner,
        state_assignment: StateAssignment,
        restored: CheckpointId,
        post: PostMail,
    ) -> None:
        try:
            state = self._restored_state(state_assignment, restored)
            self._remember_layers(runner, state, state_assignment)
            replays = self._replays(state_assignment)
        except BaseException as failure:  # noqa: BLE001 - storage and native code
            reason = f"its state could not be read: {describe_error(failure)}"
            cause = FailureCause.CHECKPOINT
            post(RestoreFailed(runner, FailSubtask(cause, reason, error_type(failure))))
            return
        runner.time.restore(dict(state_assignment.watermarks))
        post(SubtaskRestored(runner, state, replays, was_finished=state_assignment.finished))

    def _remember_layers(
        self, runner: SubtaskRunner, state: RestoredState, state_assignment: StateAssignment
    ) -> None:
        """The next increment may build on the restored files, if all of them may be shared.

        And if they were written for just its key groups: a handle that it writes names all of them,
        so old rows of a file that it had a part of would come back.
        """
        shares = state_assignment.native
        native = [piece.file for share in shares for piece in share.handle.files]
        inherited = [handle.file for handle in state_assignment.keyed]
        runner.uploads.restored(state.checkpoint, [*inherited, *native])
        runner.uploads.native.restored(state.checkpoint, state.native)
        by_state: dict[str, list[StateFile]] = {}
        for handle, (_, content) in zip(state_assignment.keyed, state.keyed, strict=True):
            by_state.setdefault(self._format.state_name(content), []).append(handle.file)
        if self.merged is not None:
            self.merged.restored(file for files in by_state.values() for file in files)
        if not self._has_all_of(state_assignment):
            return
        self._remember_log(runner, state, by_state)
        for name, files in by_state.items():
            if all(file.shared or not file.path for file in files):
                runner.uploads.layers.restored(name, state.checkpoint, files)

    def _has_all_of(self, state_assignment: StateAssignment) -> bool:
        """Whether each restored file was written for the key groups of this subtask."""
        subtask = state_assignment.subtask
        operator = self.topology.by_id[subtask.operator]
        own = range_of(subtask.index, operator.parallelism, operator.max_parallelism)
        return all(handle.groups == own for handle in state_assignment.keyed)

    def _remember_log(
        self, runner: SubtaskRunner, state: RestoredState, by_state: dict[str, list[StateFile]]
    ) -> None:
        """The log goes on from files that may be shared; after others it begins with a whole."""
        log = runner.uploads.log
        if log is None or state.native:
            return
        files = [file for its in by_state.values() for file in its]
        if not files:
            log.begun()
        elif all(file.shared or not file.path for file in files):
            log.restored(state.checkpoint, by_state, merged=self.merged is not None)

    def _restored_state(
        self, state_assignment: StateAssignment, restored: CheckpointId
    ) -> RestoredState:
        lists: dict[str, list[bytes]] = {}
        for share in state_assignment.lists:
            content = self._storage.fetch(share.handle.file)
            items = self._format.read_list(content, share.first, share.stop)
            lists.setdefault(share.handle.name, []).extend(items)
        times = [time for _, time in state_assignment.watermarks]
        return RestoredState(
            native=[self._storage.fetch_native(share) for share in state_assignment.native],
            keyed=[(h.groups, self._storage.fetch(h.file)) for h in state_assignment.keyed],
            lists=lists,
            watermark=min(times, default=None),
            checkpoint=restored,
        )

    def _replays(self, state_assignment: StateAssignment) -> dict[EdgeId, list[Batch]]:
        batches: dict[EdgeId, list[Batch]] = {}
        operator = self.topology.by_id[state_assignment.subtask.operator]
        for share in state_assignment.in_flight:
            edge = share.handle.channel.edge
            content = self._storage.fetch(share.handle.file)
            read = self._format.read_in_flight(
                content, share.groups, self._factory.keys(edge), operator.max_parallelism
            )
            batches.setdefault(edge, []).extend(read)
        return batches
