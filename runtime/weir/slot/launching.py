"""Makes a subtask out of its stage and its inheritance.

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
from weir.core.rescale import Inheritance
from weir.core.snapshots import StateFile
from weir.core.task import Task
from weir.core.topology import Topology
from weir.dataflow.physical import JobGraph
from weir.exchange import Run
from weir.exchange.routing import Router
from weir.ports.failures import error_of, in_words, is_of_user_code
from weir.ports.operators import Batch, Heritage, Operator, Place
from weir.slot.event_time import EventTime
from weir.slot.heads import operator_for
from weir.slot.hosted import Home, Hosted
from weir.slot.in_flight import read_in_flight
from weir.slot.keeping import StateFiles
from weir.slot.pipeline import Pipeline
from weir.slot.relay import Stateless
from weir.slot.uploads import Uploads
from weir.state.files import read_list, state_name
from weir.wire.control import HostSubtasks

CREDIT = 4
"""Batches that a sender may have on their way to one receiver."""


class Poster(Home, Protocol):
    """A home that takes what was prepared beside it."""

    def post(self, message: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A subtask that is ready to begin, or the reason why it is not."""

    hosted: Hosted
    heritage: Heritage
    replays: dict[EdgeId, list[Batch]]
    was_finished: bool
    problem: str = ""
    cause: FailureCause = FailureCause.CHECKPOINT
    error: str = ""
    """The type of what was raised; empty if time may heal it."""

    @classmethod
    def not_made(
        cls, hosted: Hosted, cause: FailureCause, words: str, failure: BaseException
    ) -> "Prepared":
        nothing = cls(hosted, Heritage(), {}, was_finished=False)
        return replace(nothing, problem=words, cause=cause, error=error_of(failure))

    def fill_inboxes(self) -> None:
        """In-flight data of the restored checkpoint comes before anything new."""
        for channel, inbox in self.hosted.task.inboxes.items():
            if channel.sender == RECOVERED:
                inbox.queue.extend(self.replays.get(channel.edge, ()))
                inbox.queue.append(EndOfInput())


@dataclass(frozen=True, slots=True)
class Manners:
    """How the job wants its barriers treated."""

    mode: Mode
    declines_after_end: bool


@dataclass(frozen=True, slots=True)
class Threads:
    """What runs beside the mailbox."""

    uploading: Executor
    reading: Executor


class Launcher:
    """Makes subtasks for one slot."""

    def __init__(
        self, graph: JobGraph, manners: Manners, files: StateFiles, threads: Threads
    ) -> None:
        self._graph = graph
        self._manners = manners
        self._files = files
        self._threads = threads

    @property
    def topology(self) -> Topology:
        return self._graph.topology

    def prepare(self, deploy: HostSubtasks, inheritance: Inheritance, home: Poster) -> None:
        run = (int(deploy.epoch), int(deploy.attempt))
        subtask = inheritance.subtask
        stage = self._graph.by_id[subtask.operator]
        try:
            operator = operator_for(stage, self._place(subtask, run, home.now))
        except BaseException as failure:  # noqa: BLE001 - connectors, user code, native code
            hosted = self._hosted(home, run, subtask, Stateless())
            words = f"{subtask.operator} could not be set up: {in_words(failure)}"
            is_users = is_of_user_code(failure)
            cause = FailureCause.USER_CODE if is_users else FailureCause.OPERATOR
            home.post(Prepared.not_made(hosted, cause, words, failure))
            return
        hosted = self._hosted(home, run, subtask, operator)
        self._threads.reading.submit(self._read, hosted, inheritance, deploy.restored, home)

    def _place(self, subtask: SubtaskId, run: Run, clock: Callable[[], Millis]) -> Place:
        operator = self.topology.by_id[subtask.operator]
        epoch, attempt = run
        return Place(
            subtask,
            operator.parallelism,
            operator.max_parallelism,
            epoch,
            attempt,
            clock,
            is_incremental=self._files.is_incremental,
        )

    def _hosted(self, home: Home, run: Run, subtask: SubtaskId, operator: Operator) -> Hosted:
        stage = self._graph.by_id[subtask.operator]
        routers = tuple(
            Router(self.topology, edge, subtask.index, tuple(self._graph.keys.get(edge.id, ())))
            for edge in self.topology.edges
            if edge.source == subtask.operator
        )
        return Hosted(
            home=home,
            run=run,
            task=self._task(subtask),
            operator=operator,
            pipeline=Pipeline(stage.steps),
            routers=routers,
            uploads=Uploads(subtask, run, self._files, self._threads.uploading),
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
        self, hosted: Hosted, inheritance: Inheritance, restored: CheckpointId, home: Poster
    ) -> None:
        try:
            heritage = self._heritage(inheritance, restored)
            self._remember_layers(hosted, heritage, inheritance)
            replays = self._replays(inheritance)
        except BaseException as failure:  # noqa: BLE001 - storage and native code
            words = f"its state could not be read: {in_words(failure)}"
            home.post(Prepared.not_made(hosted, FailureCause.CHECKPOINT, words, failure))
            return
        hosted.time.restore(dict(inheritance.watermarks))
        home.post(Prepared(hosted, heritage, replays, was_finished=inheritance.finished))

    def _remember_layers(
        self, hosted: Hosted, heritage: Heritage, inheritance: Inheritance
    ) -> None:
        """What was restored may be built on, if all of it may be shared."""
        inherited = (handle.file for handle in inheritance.keyed)
        hosted.uploads.restored(heritage.checkpoint, inherited)
        by_state: dict[str, list[StateFile]] = {}
        for handle, (_, content) in zip(inheritance.keyed, heritage.keyed, strict=True):
            by_state.setdefault(state_name(content), []).append(handle.file)
        for state, files in by_state.items():
            if all(file.shared or not file.path for file in files):
                hosted.uploads.layers.restored(state, heritage.checkpoint, files)

    def _heritage(self, inheritance: Inheritance, restored: CheckpointId) -> Heritage:
        lists: dict[str, list[bytes]] = {}
        for share in inheritance.lists:
            content = self._files.fetch(share.handle.file)
            items = read_list(content, share.first, share.stop)
            lists.setdefault(share.handle.name, []).extend(items)
        times = [time for _, time in inheritance.watermarks]
        return Heritage(
            keyed=[(h.groups, self._files.fetch(h.file)) for h in inheritance.keyed],
            lists=lists,
            watermark=min(times, default=None),
            checkpoint=restored,
        )

    def _replays(self, inheritance: Inheritance) -> dict[EdgeId, list[Batch]]:
        batches: dict[EdgeId, list[Batch]] = {}
        operator = self.topology.by_id[inheritance.subtask.operator]
        for share in inheritance.in_flight:
            edge = share.handle.channel.edge
            keys = self._graph.keys.get(edge, ())
            content = self._files.fetch(share.handle.file)
            read = read_in_flight(content, share.groups, keys, operator.max_parallelism)
            batches.setdefault(edge, []).extend(read)
        return batches
