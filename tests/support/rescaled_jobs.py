"""Jobs with distinguishable contents, to take through a snapshot and a change of width.

The storage here follows a state assignment literally, as a slot does, and decides nothing, so a row
that is lost, duplicated or reordered results from a decision of `weir.core.rescale`.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from weir.core.ids import (
    RECOVERED,
    ChannelId,
    CheckpointId,
    EdgeId,
    Epoch,
    Millis,
    OperatorId,
    SubtaskId,
)
from weir.core.key_groups import range_of
from weir.core.native_restore import plan_native_restore
from weir.core.rescale import StateAssignment, assign_state
from weir.core.snapshots import (
    CheckpointKind,
    InFlightHandle,
    KeyedHandle,
    KeyGroupRange,
    ListHandle,
    Manifest,
    NativeFile,
    NativeHandle,
    Redistribution,
    Side,
    StateFile,
    SubtaskSnapshot,
    Width,
)
from weir.core.topology import Edge, EdgeKind, Operator, Topology

READ, TWIN, COUNT = OperatorId("read"), OperatorId("twin"), OperatorId("count")
GROUPS = 16


def a_topology(receivers: int, senders: int = 2) -> Topology:
    """One edge of each kind into `count`; the forward one comes from a twin of its width."""
    return Topology(
        operators=(
            Operator(READ, senders, GROUPS),
            Operator(TWIN, receivers, GROUPS),
            Operator(COUNT, receivers, GROUPS, is_sink=True),
        ),
        edges=tuple(
            Edge(EdgeId(kind), TWIN if kind is EdgeKind.FORWARD else READ, COUNT, kind)
            for kind in EdgeKind
        ),
    )


def a_manifest(
    topology: Topology, *snapshots: SubtaskSnapshot, finished: Iterable[SubtaskId] = ()
) -> Manifest:
    return Manifest(
        checkpoint=CheckpointId(1),
        epoch=Epoch(1),
        kind=CheckpointKind.CHECKPOINT,
        taken_at=Millis(0),
        location="memory",
        fingerprint=topology.fingerprint(),
        widths=tuple(Width(o.id, o.parallelism, o.max_parallelism) for o in topology.operators),
        snapshots=snapshots,
        finished=tuple(finished),
        coordinators=(),
        ledgers=(),
    )


def a_file(path: str) -> StateFile:
    return StateFile(path, bytes=1)


def a_native(groups: KeyGroupRange, *files: StateFile) -> NativeHandle:
    named = tuple(NativeFile(f"{n:06}.sst", file) for n, file in enumerate(files, 1))
    return NativeHandle(groups, "rocksdb", 1, named, ())


def a_list(redistribution: Redistribution, items: int, path: str = "list") -> ListHandle:
    return ListHandle(redistribution.value, redistribution, a_file(path), items)


def caught(kind: EdgeKind, sender: int, receiver: int, side: Side) -> InFlightHandle:
    path = f"{kind} {sender}>{receiver} {side}"
    return InFlightHandle(ChannelId(EdgeId(kind), sender, receiver), side, a_file(path))


def count(index: int) -> SubtaskId:
    return SubtaskId(COUNT, index)


class Row(NamedTuple):
    """A row in flight; `origin` is the channel that first carried it."""

    origin: ChannelId
    group: int
    number: int


@dataclass
class Holding:
    """What a subtask has in its hands when a barrier comes, or after it was restored."""

    groups: list[int] = field(default_factory=list)
    lists: dict[Redistribution, list[str]] = field(default_factory=lambda: defaultdict(list))
    in_flight: dict[tuple[ChannelId, Side], list[Row]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def replay(self, kind: EdgeKind) -> list[Row]:
        """All recovered rows of an edge, in the order of their processing."""
        return [
            row
            for (channel, _), rows in self.in_flight.items()
            if channel.edge == EdgeId(kind)
            for row in rows
        ]


Job = dict[SubtaskId, Holding]


def a_job(topology: Topology, salt: int) -> Job:
    """Fill every kind of state and every channel, unevenly, with distinguishable values."""
    job: Job = {subtask: Holding() for subtask in topology.subtasks}
    width = topology.by_id[COUNT].parallelism
    for index in range(width):
        own = range_of(index, width, GROUPS)
        held = job[count(index)]
        held.groups = list(range(own.first, own.last + 1))
        for redistribution in Redistribution:
            held.lists[redistribution] = [f"{index}.{n}" for n in range((salt + index * 3) % 5)]
        held.lists[Redistribution.BROADCAST] = [f"copy of {index}"]
    for edge in topology.edges:
        channels = topology.channels(edge)
        fed = sorted({channel.receiver for channel in channels})
        for channel in (*(ChannelId(edge.id, RECOVERED, i) for i in fed), *channels):
            _fill(job, topology, channel, salt)
    return job


def _fill(job: Job, topology: Topology, channel: ChannelId, salt: int) -> None:
    own = range_of(channel.receiver, topology.by_id[COUNT].parallelism, GROUPS)
    rows = [
        Row(channel, own.first + (n * salt) % (own.last - own.first + 1), n)
        for n in range((salt + channel.sender + 2 * channel.receiver) % 7)
    ]
    arrived = rows if channel.sender == RECOVERED else rows[: len(rows) // 2]
    waiting = rows[len(arrived) :]
    if arrived:
        job[topology.receiver(channel)].in_flight[channel, Side.INPUT] = arrived
    if waiting:
        job[topology.sender(channel)].in_flight[channel, Side.OUTPUT] = waiting


class Storage:
    """Files by path; a snapshot writes them and a state assignment lists what to read."""

    def __init__(self) -> None:
        self.files: dict[str, list[Any]] = {}

    def write(self, content: list[Any]) -> StateFile:
        path = f"file-{len(self.files)}"
        self.files[path] = list(content)
        return a_file(path)

    def snapshot(self, topology: Topology, job: Job) -> Manifest:
        def part(subtask: SubtaskId, held: Holding) -> SubtaskSnapshot:
            groups = KeyGroupRange(min(held.groups), max(held.groups)) if held.groups else None
            is_native = bool(groups) and subtask.index % 2 == 1
            return SubtaskSnapshot(
                subtask,
                keyed=(
                    (KeyedHandle(groups, self.write(held.groups)),)
                    if groups and not is_native
                    else ()
                ),
                native=(
                    (a_native(groups, self.write(held.groups)),) if groups and is_native else ()
                ),
                lists=tuple(
                    ListHandle(kind.value, kind, self.write(items), len(items))
                    for kind, items in held.lists.items()
                ),
                in_flight=tuple(
                    InFlightHandle(channel, side, self.write(rows))
                    for (channel, side), rows in held.in_flight.items()
                ),
            )

        # The last subtask is the first to answer: a manifest's order must not matter.
        return a_manifest(topology, *(part(s, held) for s, held in reversed(job.items())))

    def restore(self, manifest: Manifest, topology: Topology) -> Job:
        restored_state = assign_state(manifest, topology)
        return {subtask: self._read(restored_state[subtask]) for subtask in topology.subtasks}

    def _read(self, heir: StateAssignment) -> Holding:
        held = Holding()
        held.groups += self._native(heir)
        for groups, file in heir.keyed:
            held.groups += [group for group in self.files[file.path] if group in groups]
        for item in heir.lists:
            items = self.files[item.handle.file.path][item.first : item.stop]
            held.lists[item.handle.redistribution] += items
        for share in heir.in_flight:
            edge = share.handle.channel.edge
            held.in_flight[ChannelId(edge, RECOVERED, heir.subtask.index), Side.INPUT] += [
                row
                for row in self.files[share.handle.file.path]
                if share.groups is None or row.group in share.groups
            ]
        held.groups.sort()
        return held

    def _native(self, heir: StateAssignment) -> list[int]:
        """The key groups after the instances have become one, in this order."""
        plan = plan_native_restore(heir.native)
        if plan is None:
            return []
        (native,) = plan.opened.handle.files
        groups = self.files[native.file.path]
        kept = [g for g in groups if not any(g in clipped for clipped in plan.clipped)]
        for share in plan.copied:
            (native,) = share.handle.files
            kept += [group for group in self.files[native.file.path] if group in share.groups]
        return kept


def rescaled(*topologies: Topology, salt: int) -> tuple[Job, Job]:
    """Run a job through a chain of widths; its beginning and its end."""
    storage, job = Storage(), a_job(topologies[0], salt)
    first = job
    for before, after in pairwise(topologies):
        job = storage.restore(storage.snapshot(before, job), after)
    return first, job


def receivers(job: Job) -> list[Holding]:
    return [held for subtask, held in sorted(job.items()) if subtask.operator == COUNT]


def rows_of(job: Job, kind: EdgeKind) -> list[Row]:
    return [row for held in job.values() for row in held.replay(kind)]
