"""Decides which subtask of a restored job reads which part of an old checkpoint.

The old and the new job may differ in the width of every operator. Nothing is copied or rewritten
for that: each new subtask gets a list of files and the part of each to read. Every key group, list
item and in-flight row has exactly one reader, except union state, which every subtask reads, and
broadcast state, of which every old subtask has a full copy: a new subtask reads one of them.

In-flight rows are replayed where they were going, whichever side had caught them, so the senders of
an edge may be as many as they like. Replaying keeps the order in which the rows of one key travel:
what was recovered before, then what had arrived, then what was still to be sent. It relies on one
promise of the slots: a channel's file holds only rows that belong to its receiver, so rows filtered
out of a replay never get into the next snapshot.

This module opens no file and refuses no checkpoint: whether a manifest suits a topology at all is
judged in recovery, and a mismatch that gets here fails an assertion.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from weir.core.ids import EdgeId, Millis, OperatorId, SubtaskId
from weir.core.key_groups import owner_of, range_of
from weir.core.snapshots import (
    InFlightHandle,
    KeyedHandle,
    KeyGroupRange,
    ListHandle,
    Manifest,
    NativeHandle,
    Redistribution,
    Side,
    SubtaskSnapshot,
)
from weir.core.topology import Edge, EdgeKind, Operator, Topology


@dataclass(frozen=True, slots=True)
class ListShare:
    """The items from first up to, not including, stop of one file."""

    handle: ListHandle
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class NativeShare:
    """The entries of these key groups in one native instance, which may have others as well."""

    groups: KeyGroupRange
    handle: NativeHandle


@dataclass(frozen=True, slots=True)
class InFlightShare:
    """Rows of one old channel to be processed again."""

    handle: InFlightHandle
    groups: KeyGroupRange | None
    """Only the rows of these key groups are meant; None when every row of the file is."""


@dataclass(frozen=True, slots=True)
class StateAssignment:
    """The state that one subtask starts with."""

    subtask: SubtaskId
    keyed: tuple[KeyedHandle, ...] = ()
    """Each with the key groups to read, which may be fewer than its file has."""
    lists: tuple[ListShare, ...] = ()
    in_flight: tuple[InFlightShare, ...] = ()
    """In the order of replay."""
    watermarks: tuple[tuple[EdgeId, Millis], ...] = ()
    """Where each input edge restarts, before any in-flight row."""
    finished: bool = False
    """It had finished, and is assigned no state."""
    native: tuple[NativeShare, ...] = ()
    """Below the keyed files of the same state. No two have a key group in common."""


@dataclass(frozen=True)
class _Past:
    """One operator as the checkpoint knew it, and the width it is restored to."""

    old_parallelism: int
    parallelism: int
    max_parallelism: int
    snapshots: tuple[SubtaskSnapshot, ...]
    finished: frozenset[int]

    @property
    def is_same_width(self) -> bool:
        return self.old_parallelism == self.parallelism

    def is_finished(self, index: int) -> bool:
        """A finished subtask stays so; after a change of width only if they all had finished."""
        everyone = len(self.finished) == self.old_parallelism
        return everyone or (self.is_same_width and index in self.finished)

    @cached_property
    def followers(self) -> dict[int, list[int]]:
        """For each old subtask, the new ones that take over its copy of what is broadcast."""
        contributing = [i for i in range(self.old_parallelism) if i not in self.finished]
        found: dict[int, list[int]] = defaultdict(list)
        for index in range(self.parallelism):
            found[successor_of(index, contributing)].append(index)
        return found


_Reader = tuple[int, KeyGroupRange | None]
"""A new index, and what of a file it reads."""

_Owned = tuple[int, ListHandle]
"""An old index, and what its subtask left."""


def assign_state(
    manifest: Manifest, topology: Topology, *, without_in_flight: bool = False
) -> dict[SubtaskId, StateAssignment]:
    """Assign state to every subtask of the topology; a new operator's subtasks get none."""
    pasts = _pasts(manifest, topology)
    replays = {} if without_in_flight else _in_flight(manifest, topology, pasts)
    watermarks = _watermarks(manifest, topology)
    state_assignments = {subtask: StateAssignment(subtask) for subtask in topology.subtasks}
    for operator, past in pasts.items():
        keyed, native = _keyed(past), _native(past)
        lists = _lists(past)
        for index in range(past.parallelism):
            subtask = SubtaskId(operator, index)
            state_assignments[subtask] = (
                StateAssignment(subtask, finished=True)
                if past.is_finished(index)
                else StateAssignment(
                    subtask,
                    keyed=tuple(keyed[index]),
                    native=tuple(native[index]),
                    lists=tuple(lists[index]),
                    in_flight=tuple(replays.get(subtask, ())),
                    watermarks=watermarks.get(operator, ()),
                )
            )
    return state_assignments


def successor_of(index: int, contributing: Sequence[int]) -> int:
    """The old subtask, of those in ascending order, whose broadcast copy this new one takes."""
    place = bisect_left(contributing, index)
    if place < len(contributing) and contributing[place] == index:
        return index
    return contributing[index % len(contributing)]


def share_of(index: int, parallelism: int, items: int) -> tuple[int, int]:
    """Where a subtask's even and contiguous share of a row of items begins, and where it stops."""
    return (
        (index * items + parallelism - 1) // parallelism,
        ((index + 1) * items + parallelism - 1) // parallelism,
    )


def _pasts(manifest: Manifest, topology: Topology) -> dict[OperatorId, _Past]:
    """Every operator that both sides know, in the order of the topology."""
    snapshots: dict[OperatorId, list[SubtaskSnapshot]] = defaultdict(list)
    for snapshot in sorted(manifest.snapshots, key=lambda snapshot: snapshot.subtask):
        snapshots[snapshot.subtask.operator].append(snapshot)
    finished: dict[OperatorId, set[int]] = defaultdict(set)
    for subtask in manifest.finished:
        finished[subtask.operator].add(subtask.index)
    widths = {width.operator: width for width in manifest.widths}
    assert widths.keys() >= snapshots.keys(), (
        "a manifest has the width of every operator with state"
    )

    pasts = {}
    for operator in topology.operators:
        if operator.id not in widths:
            continue
        _, old_parallelism, max_parallelism = widths[operator.id]
        assert max_parallelism == operator.max_parallelism, f"{operator.id}: max parallelism moved"
        pasts[operator.id] = _Past(
            old_parallelism,
            operator.parallelism,
            max_parallelism,
            tuple(snapshots[operator.id]),
            frozenset(finished[operator.id]),
        )
        _check(operator, pasts[operator.id])
    return pasts


def _check(operator: Operator, past: _Past) -> None:
    for snapshot in past.snapshots:
        index = snapshot.subtask.index
        assert 0 <= index < past.old_parallelism, f"{snapshot.subtask} is beyond the old width"
        assert index not in past.finished, f"{snapshot.subtask} finished and has a snapshot"
    partly = 0 < len(past.finished) < past.old_parallelism
    assert not partly or not any(
        handle.redistribution is Redistribution.UNION
        for snapshot in past.snapshots
        for handle in snapshot.lists
    ), f"{operator.id}: union state of a partly finished operator"


def _keyed(past: _Past) -> dict[int, list[KeyedHandle]]:
    dealt: dict[int, list[KeyedHandle]] = defaultdict(list)
    for snapshot in past.snapshots:
        for handle in snapshot.keyed:
            for index, groups in _owners(handle.groups, past):
                dealt[index].append(KeyedHandle(groups, handle.file))
    return dealt


def _native(past: _Past) -> dict[int, list[NativeShare]]:
    dealt: dict[int, list[NativeShare]] = defaultdict(list)
    for snapshot in past.snapshots:
        for handle in snapshot.native:
            for index, groups in _owners(handle.groups, past):
                dealt[index].append(NativeShare(groups, handle))
    return dealt


def _owners(groups: KeyGroupRange, past: _Past) -> Iterator[tuple[int, KeyGroupRange]]:
    """The new subtasks that own some of these key groups, each with those it owns."""
    lowest = owner_of(groups.first, past.parallelism, past.max_parallelism)
    highest = owner_of(groups.last, past.parallelism, past.max_parallelism)
    for index in range(lowest, highest + 1):
        own = range_of(index, past.parallelism, past.max_parallelism)
        yield index, KeyGroupRange(max(own.first, groups.first), min(own.last, groups.last))


def _lists(past: _Past) -> dict[int, list[ListShare]]:
    """State by state in the order of their names; within one state by old subtask."""
    by_name: dict[str, list[_Owned]] = defaultdict(list)
    for snapshot in past.snapshots:
        for handle in snapshot.lists:
            by_name[handle.name].append((snapshot.subtask.index, handle))
    dealt: dict[int, list[ListShare]] = defaultdict(list)
    for name in sorted(by_name):
        for index, share in _redistributed(by_name[name], past):
            if share.first < share.stop:
                dealt[index].append(share)
    return dealt


def _redistributed(handles: Sequence[_Owned], past: _Past) -> Iterator[tuple[int, ListShare]]:
    """Deal out one state."""
    _, some = handles[0]
    assert all(handle.redistribution is some.redistribution for _, handle in handles), (
        f"list state {some.name!r} is redistributed in two ways"
    )
    match some.redistribution:
        case Redistribution.SPLIT if past.is_same_width:
            return _kept(handles)
        case Redistribution.SPLIT:
            return _split(handles, past.parallelism)
        case Redistribution.UNION:
            return _united(handles, past.parallelism)
        case Redistribution.BROADCAST:
            return _followed(handles, past.followers)


def _kept(handles: Sequence[_Owned]) -> Iterator[tuple[int, ListShare]]:
    for old, handle in handles:
        yield old, ListShare(handle, 0, handle.items)


def _split(handles: Sequence[_Owned], parallelism: int) -> Iterator[tuple[int, ListShare]]:
    """Lay all items out in one row and cut it into equal lengths."""
    items = sum(handle.items for _, handle in handles)
    offset = 0
    for _, handle in handles:
        end = offset + handle.items
        if handle.items:
            lowest = offset * parallelism // items
            highest = (end - 1) * parallelism // items
            for index in range(lowest, highest + 1):
                first, stop = share_of(index, parallelism, items)
                yield index, ListShare(handle, max(first, offset) - offset, min(stop, end) - offset)
        offset = end


def _united(handles: Sequence[_Owned], parallelism: int) -> Iterator[tuple[int, ListShare]]:
    for index in range(parallelism):
        for _, handle in handles:
            yield index, ListShare(handle, 0, handle.items)


def _followed(
    handles: Sequence[_Owned], followers: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, ListShare]]:
    for old, handle in handles:
        for index in followers.get(old, ()):
            yield index, ListShare(handle, 0, handle.items)


def _in_flight(
    manifest: Manifest, topology: Topology, pasts: Mapping[OperatorId, _Past]
) -> dict[SubtaskId, list[InFlightShare]]:
    by_edge: dict[EdgeId, list[InFlightHandle]] = defaultdict(list)
    for snapshot in manifest.snapshots:
        for handle in snapshot.in_flight:
            assert handle.channel.edge in topology.edge_by_id, f"{handle.channel} is no more"
            edge = topology.edge_by_id[handle.channel.edge]
            assert snapshot.subtask == _catcher(handle, edge), f"{handle.channel} caught elsewhere"
            by_edge[edge.id].append(handle)

    replays: dict[SubtaskId, list[InFlightShare]] = defaultdict(list)
    for edge in topology.edges:
        if edge.id not in by_edge:
            continue
        assert edge.target in pasts, f"edge {edge.id} led to an operator without a past"
        past = pasts[edge.target]
        readers = {
            receiver: _readers(edge.kind, receiver, past)
            for receiver in sorted({handle.channel.receiver for handle in by_edge[edge.id]})
        }
        for handle in sorted(by_edge[edge.id], key=_place):
            for index, groups in readers[handle.channel.receiver]:
                share = InFlightShare(handle, groups)
                replays[SubtaskId(edge.target, index)].append(share)
    return replays


def _catcher(handle: InFlightHandle, edge: Edge) -> SubtaskId:
    """The subtask whose snapshot holds this handle."""
    if handle.side is Side.INPUT:
        return SubtaskId(edge.target, handle.channel.receiver)
    return SubtaskId(edge.source, handle.channel.sender)


def _place(handle: InFlightHandle) -> tuple[int, int, bool]:
    """The turn of a handle within its edge; a recovered channel's sender is below all others."""
    return handle.channel.sender, handle.channel.receiver, handle.side is Side.OUTPUT


def _readers(kind: EdgeKind, receiver: int, past: _Past) -> list[_Reader]:
    """The new subtasks that replay what one old receiver was to get, and of which key groups."""
    assert 0 <= receiver < past.old_parallelism, "a channel led beyond the old width"
    assert receiver not in past.finished, "rows were on their way to a subtask that had finished"
    match kind:
        case EdgeKind.HASH:
            old = range_of(receiver, past.old_parallelism, past.max_parallelism)
            return [
                (index, None if groups == old else groups) for index, groups in _owners(old, past)
            ]
        case EdgeKind.BROADCAST:
            return [(index, None) for index in past.followers.get(receiver, ())]
        case _:
            # Whole, to one receiver in the same proportion: the same one at the same width, and
            # receiver 0 of a global edge stays receiver 0.
            return [(receiver * past.parallelism // past.old_parallelism, None)]


def _watermarks(
    manifest: Manifest, topology: Topology
) -> dict[OperatorId, tuple[tuple[EdgeId, Millis], ...]]:
    """For each operator its input edges with the lowest watermark that any old subtask had."""
    lowest: dict[EdgeId, Millis] = {}
    for snapshot in manifest.snapshots:
        for edge, watermark in snapshot.watermarks:
            lowest[edge] = min(watermark, lowest.get(edge, watermark))
    found: dict[OperatorId, list[tuple[EdgeId, Millis]]] = defaultdict(list)
    for edge_ in topology.edges:
        if edge_.id in lowest:
            found[edge_.target].append((edge_.id, lowest[edge_.id]))
    return {operator: tuple(pairs) for operator, pairs in found.items()}
