"""Makes a subtask out of its stage and its state assignment.

The operator is made by the mailbox's thread, which it belongs to; its state is read beside it, for
that can take long, and not behind what a dead attempt still uploads. A subtask that cannot be made
or whose state cannot be read is handed over all the same, with the reason, so that the driver hears
of it like of any other failure.
"""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Protocol

from weir.core.alignment import Aligner, Tracker
from weir.core.attempt import FailureCause
from weir.core.barriers import EndOfInput
from weir.core.channels import Inbox, Outbox
from weir.core.ids import RECOVERED, ChannelId, CheckpointId, EdgeId, Millis, SubtaskId
from weir.core.policy import Mode
from weir.core.rescale import StateAssignment
from weir.core.snapshots import StateFile
from weir.core.task import Task
from weir.core.topology import Topology
from weir.dataflow.physical import JobGraph
from weir.exchange import Run
from weir.exchange.routing import Router
from weir.ports.operators import Batch, Operator, RestoredState, TaskInfo
from weir.ports.user_code_errors import describe_error, error_type, is_of_user_code
from weir.slot.event_time import EventTime
from weir.slot.in_flight import read_in_flight
from weir.slot.operator_factory import operator_for
from weir.slot.pipeline import Pipeline
from weir.slot.relay import Stateless
from weir.slot.snapshot_storage import SnapshotStorage
from weir.slot.snapshot_uploads import SnapshotUploads
from weir.slot.subtask_runner import Home, SubtaskRunner
from weir.state.snapshot_files import read_list, state_name
from weir.wire.control_messages import DeploySubtasks

CREDIT = 4
"""Batches that a sender may have on their way to one receiver."""


class Poster(Home, Protocol):
    """A home that takes what was prepared beside it."""

    def post(self, message: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A subtask that is ready to begin, or the reason why it is not."""

    hosted: SubtaskRunner
    restored_state: RestoredState
    replays: dict[EdgeId, list[Batch]]
    was_finished: bool
    problem: str = ""
    cause: FailureCause = FailureCause.CHECKPOINT
    error: str = ""
    """The type of what was raised; empty if time may heal it."""

    @classmethod
    def not_made(
        cls, hosted: SubtaskRunner, cause: FailureCause, words: str, failure: BaseException
    ) -> "Prepared":
        nothing = cls(hosted, RestoredState(), {}, was_finished=False)
        return replace(nothing, problem=words, cause=cause, error=error_type(failure))

    def fill_inboxes(self) -> None:
        """In-flight data of the restored checkpoint comes before anything new."""
        for channel, inbox in self.hosted.task.inboxes.items():
            if channel.sender == RECOVERED:
                inbox.queue.extend(self.replays.get(channel.edge, ()))
                inbox.queue.append(EndOfInput())


@dataclass(frozen=True, slots=True)
class AlignmentSettings:
    """How the job wants its barriers treated."""

    mode: Mode
    declines_after_end: bool


@dataclass(frozen=True, slots=True)
class SlotExecutors:
    """What runs beside the mailbox."""

    uploading: Executor
    reading: Executor


class SubtaskDeployer:
    """Makes subtasks for one slot."""

    def __init__(
        self,
        graph: JobGraph,
        manners: AlignmentSettings,
        files: SnapshotStorage,
        threads: SlotExecutors,
    ) -> None:
        self._graph = graph
        self._manners = manners
        self._files = files
        self._threads = threads

    @property
    def topology(self) -> Topology:
        return self._graph.topology

    def prepare(
        self, deploy: DeploySubtasks, state_assignment: StateAssignment, home: Poster
    ) -> None:
        run = (int(deploy.epoch), int(deploy.attempt))
        subtask = state_assignment.subtask
        stage = self._graph.by_id[subtask.operator]
        try:
            operator = operator_for(stage, self._place(subtask, run, home.now))
        except BaseException as failure:  # noqa: BLE001 - connectors, user code, native code
            hosted = self._hosted(home, run, subtask, Stateless())
            words = f"{subtask.operator} could not be set up: {describe_error(failure)}"
            is_users = is_of_user_code(failure)
            cause = FailureCause.USER_CODE if is_users else FailureCause.OPERATOR
            home.post(Prepared.not_made(hosted, cause, words, failure))
            return
        hosted = self._hosted(home, run, subtask, operator)
        self._threads.reading.submit(self._read, hosted, state_assignment, deploy.restored, home)

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
            is_incremental=self._files.is_incremental,
        )

    def _hosted(
        self, home: Home, run: Run, subtask: SubtaskId, operator: Operator
    ) -> SubtaskRunner:
        stage = self._graph.by_id[subtask.operator]
        routers = tuple(
            Router(self.topology, edge, subtask.index, tuple(self._graph.keys.get(edge.id, ())))
            for edge in self.topology.edges
            if edge.source == subtask.operator
        )
        return SubtaskRunner(
            home=home,
            run=run,
            task=self._task(subtask),
            operator=operator,
            pipeline=Pipeline(stage.steps),
            routers=routers,
            uploads=SnapshotUploads(subtask, run, self._files, self._threads.uploading),
            time=EventTime(self.topology.inputs[subtask]),
        )

    def _task(self, subtask: SubtaskId) -> Task:
        inputs = self.topology.inputs[subtask]
        recovered = {ChannelId(c.edge, RECOVERED, c.receiver): 0 for c in inputs}
        channels = (*recovered, *inputs)
        machine = Aligner if self._manners.mode is Mode.EXACTLY_ONCE else Tracker
        return Task(
            subtask,
            machine(channels, declines_on_end=self._manners.declines_after_end),
            {channel: Inbox(channel) for channel in channels},
            {channel: Outbox(channel, CREDIT) for channel in self.topology.outputs[subtask]},
        )

    # -- beside the mailbox

    def _read(
        self,
        hosted: SubtaskRunner,
        state_assignment: StateAssignment,
        restored: CheckpointId,
        home: Poster,
    ) -> None:
        try:
            restored_state = self._heritage(state_assignment, restored)
            self._remember_layers(hosted, restored_state, state_assignment)
            replays = self._replays(state_assignment)
        except BaseException as failure:  # noqa: BLE001 - storage and native code
            words = f"its state could not be read: {describe_error(failure)}"
            home.post(Prepared.not_made(hosted, FailureCause.CHECKPOINT, words, failure))
            return
        hosted.time.restore(dict(state_assignment.watermarks))
        home.post(Prepared(hosted, restored_state, replays, was_finished=state_assignment.finished))

    def _remember_layers(
        self,
        hosted: SubtaskRunner,
        restored_state: RestoredState,
        state_assignment: StateAssignment,
    ) -> None:
        """What was restored may be built on, if all of it may be shared."""
        inherited = (handle.file for handle in state_assignment.keyed)
        hosted.uploads.restored(restored_state.checkpoint, inherited)
        by_state: dict[str, list[StateFile]] = {}
        for handle, (_, content) in zip(state_assignment.keyed, restored_state.keyed, strict=True):
            by_state.setdefault(state_name(content), []).append(handle.file)
        for state, files in by_state.items():
            if all(file.shared or not file.path for file in files):
                hosted.uploads.layers.restored(state, restored_state.checkpoint, files)

    def _heritage(self, state_assignment: StateAssignment, restored: CheckpointId) -> RestoredState:
        lists: dict[str, list[bytes]] = {}
        for share in state_assignment.lists:
            content = self._files.fetch(share.handle.file)
            items = read_list(content, share.first, share.stop)
            lists.setdefault(share.handle.name, []).extend(items)
        times = [time for _, time in state_assignment.watermarks]
        return RestoredState(
            keyed=[(h.groups, self._files.fetch(h.file)) for h in state_assignment.keyed],
            lists=lists,
            watermark=min(times, default=None),
            checkpoint=restored,
        )

    def _replays(self, state_assignment: StateAssignment) -> dict[EdgeId, list[Batch]]:
        batches: dict[EdgeId, list[Batch]] = {}
        operator = self.topology.by_id[state_assignment.subtask.operator]
        for share in state_assignment.in_flight:
            edge = share.handle.channel.edge
            keys = self._graph.keys.get(edge, ())
            content = self._files.fetch(share.handle.file)
            read = read_in_flight(content, share.groups, keys, operator.max_parallelism)
            batches.setdefault(edge, []).extend(read)
        return batches
