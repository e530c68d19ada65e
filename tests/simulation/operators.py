"""User code of a simulated job: sources, maps, keyed counts, broadcast rules, two-phase sinks.

Each operator keeps state that would betray a lost, doubled or reordered row: keyed counts number
the rows of a key, maps count what passed, broadcast state remembers every rule. They emit rows and
markers through the task they belong to and know nothing of checkpoints but how to be captured.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from simulation.external import External, Owner
from simulation.scenario import MAX_PARALLELISM
from simulation.world import World
from weir.core.barriers import EndOfData, Idle, Watermark
from weir.core.enumerator import AssignSplit, Message, NoMoreSplits, NoSplitsYet
from weir.core.ids import ChannelId, CheckpointId, EdgeId, Millis, SubtaskId
from weir.core.key_groups import group_of, hash_of_long, owner_of
from weir.core.snapshots import Redistribution, Transaction
from weir.core.topology import EdgeKind, Topology
from weir.slot.event_time import EventTime

KEYS = 7
GROUPS = {key: group_of(hash_of_long(key), MAX_PARALLELISM) for key in range(KEYS)}

Input = tuple[int, int, str, int, int]
"""(split, offset, tag, key, count) of a row on its way; the tag tells branches apart."""


def key_of(split: int, offset: int) -> int:
    """Neighbours often share a key, so that a changed order shows."""
    return (split * 5 + offset // 3) % KEYS


def time_of(row: Input) -> int:
    return row[0] * 1000 + row[1]


class UserCodeError(Exception):
    """User code raised."""


@dataclass
class Captured:
    """State as it was at a barrier."""

    keyed: dict[int, dict[int, tuple[int, tuple[tuple[str, int], ...]]]] = field(
        default_factory=dict
    )
    """group -> key -> (count, newest offset by split and tag)."""
    lists: dict[str, tuple[Redistribution, tuple[object, ...]]] = field(default_factory=dict)
    transactions: tuple[Transaction, ...] = ()


@dataclass
class Router:
    """Spreads rows over the output channels of one subtask."""

    topology: Topology
    subtask: SubtaskId
    outputs: tuple[ChannelId, ...]
    turn: int = 0

    def route(self, rows: Iterable[Input]) -> list[tuple[ChannelId, Input]]:
        sent: list[tuple[ChannelId, Input]] = []
        for row in rows:
            for edge_id, channels in self._edges().items():
                sent += [(c, self._tagged(edge_id, row)) for c in self._pick(channels, row)]
        return sent

    def _edges(self) -> dict[EdgeId, list[ChannelId]]:
        edges: dict[EdgeId, list[ChannelId]] = {}
        for channel in self.outputs:
            edges.setdefault(channel.edge, []).append(channel)
        return edges

    def _pick(self, channels: list[ChannelId], row: Input) -> list[ChannelId]:
        edge = self.topology.edge_by_id[channels[0].edge]
        if edge.kind is EdgeKind.BROADCAST:
            return channels
        if edge.kind is EdgeKind.HASH:
            width = self.topology.by_id[edge.target].parallelism
            owner = owner_of(GROUPS[row[3]], width, MAX_PARALLELISM)
            return [channel for channel in channels if channel.receiver == owner]
        if edge.kind is EdgeKind.GLOBAL:
            return [channel for channel in channels if channel.receiver == 0]
        self.turn += 1
        return [channels[self.turn % len(channels)]]

    def _tagged(self, edge: EdgeId, row: Input) -> Input:
        """Rows that branch are told apart by the branch they took."""
        branches = len({channel.edge for channel in self.outputs})
        if branches == 1:
            return row
        return (row[0], row[1], row[2] + str(edge), row[3], row[4])


class Operator:
    """What every operator shares: routing and time."""

    def __init__(self, world: World, topology: Topology, subtask: SubtaskId) -> None:
        self.world = world
        self.topology = topology
        self.subtask = subtask
        self.router = Router(topology, subtask, topology.outputs[subtask])
        self.heard: dict[ChannelId, Millis] = dict.fromkeys(topology.inputs[subtask], Millis(0))
        self.time = EventTime(self.heard)
        self.sent_watermark = Millis(0)
        self.sent_idle = False

    # state

    def capture(self, checkpoint: CheckpointId) -> Captured:
        del checkpoint
        return Captured()

    def restore_keyed(self, key: int, state: tuple[int, tuple[tuple[str, int], ...]]) -> None:
        raise AssertionError(f"{self.subtask} has no keyed state, yet {key} is {state}")

    def restore_list(self, name: str, items: list[object]) -> None:
        raise AssertionError(f"{self.subtask} has no list state {name}, yet {items}")

    def restore_watermarks(self, watermarks: dict[EdgeId, Millis]) -> None:
        self.time.restore(watermarks)
        self.sent_watermark = self.watermark

    # work

    def process(self, row: Input) -> list[Input]:
        return [row]

    def flush(self) -> list[Input]:
        """What is buffered and in no state: it must leave before any barrier does."""
        return []

    def completed(self, checkpoint: CheckpointId) -> None:
        del checkpoint

    def ended(self) -> None:
        """The last row has been processed."""

    # time

    @property
    def watermark(self) -> Millis:
        return self.time.now

    def advance(self, channel: ChannelId, marker: object) -> None:
        before = self.watermark
        match marker:
            case Watermark(time):
                if time < self.heard[channel]:
                    self.world.violated(f"the watermark of {channel} went back to {time}")
                self.heard[channel] = time
                self.time.advance(channel, time)
            case Idle():
                self.world.saw("an idle channel")
                self.time.rest(channel)
            case _:
                assert isinstance(marker, EndOfData)
                self.time.end(channel)
        if self.watermark < before:
            self.world.violated(f"the time of {self.subtask} went back to {self.watermark}")


class Source(Operator):
    """Reads splits that the enumerator assigns."""

    def __init__(self, world: World, topology: Topology, subtask: SubtaskId, rows: int) -> None:
        super().__init__(world, topology, subtask)
        self.rows = rows
        self.positions: dict[int, int] = {}
        self.highest = -1
        self.wants_split = True
        self.no_more = False
        self.is_idle = False

    def hear(self, message: Message) -> None:
        """The enumerator's answer to a request for a split."""
        self.is_idle = isinstance(message, NoSplitsYet)
        if isinstance(message, NoMoreSplits):
            self.no_more = True
        elif isinstance(message, AssignSplit):
            self._begin(message)

    def _begin(self, message: AssignSplit) -> None:
        if self.sent_idle:
            self.world.saw("an idle source went on")
            self.world.time_is_checked = False
        split = int(message.split)
        if split in self.positions:
            self.world.violated(f"{self.subtask} was given split {split} twice")
        self.positions[split] = 0
        self.wants_split = True

    @property
    def current(self) -> int | None:
        unread = [s for s, position in self.positions.items() if position < self.rows]
        return min(unread, default=None)

    def poll(self, count: int) -> list[Input]:
        split = self.current
        if split is None:
            return []
        if split < self.highest:
            self.world.saw("source went back to an older split")
            self.world.time_is_checked = False
        self.highest = max(self.highest, split)
        first = self.positions[split]
        last = min(first + count, self.rows)
        self.positions[split] = last
        return [(split, o, self.subtask.operator, key_of(split, o), 0) for o in range(first, last)]

    def low_watermark(self) -> Millis:
        split = self.current
        return Millis(0) if split is None else Millis(split * 1000 + self.positions[split])

    def capture(self, checkpoint: CheckpointId) -> Captured:
        del checkpoint
        items = tuple(sorted(self.positions.items()))
        return Captured(lists={"splits": (Redistribution.SPLIT, items)})

    def restore_list(self, name: str, items: list[object]) -> None:
        assert name == "splits", name
        for item in items:
            assert isinstance(item, tuple), item
            if item[0] in self.positions:
                self.world.violated(f"{self.subtask} inherits split {item[0]} twice")
            self.positions[item[0]] = item[1]


class Map(Operator):
    """Passes rows on, some of them a little later, and counts them in list state."""

    redistribution = Redistribution.SPLIT

    def __init__(self, world: World, topology: Topology, subtask: SubtaskId, name: str) -> None:
        super().__init__(world, topology, subtask)
        self.name = name
        self.counts: dict[str, int] = {}
        self.buffer: list[Input] = []

    def process(self, row: Input) -> list[Input]:
        self.counts[self.name] = self.counts.get(self.name, 0) + 1
        self.buffer.append(row)
        return [] if self.world.rng.random() < 0.3 else self.flush()

    def flush(self) -> list[Input]:
        rows, self.buffer = self.buffer, []
        return rows

    def capture(self, checkpoint: CheckpointId) -> Captured:
        del checkpoint
        items = tuple(sorted(self.counts.items()))
        return Captured(lists={"passed": (self.redistribution, items)})

    def restore_list(self, name: str, items: list[object]) -> None:
        assert name == "passed", name
        for item in items:
            assert isinstance(item, tuple), item
            if item[0] in self.counts:
                self.world.violated(f"{self.subtask} inherits {item[0]} twice")
            self.counts[item[0]] = item[1]

    def ended(self) -> None:
        self.world.passed[self.subtask] = sum(self.counts.values())


class UnionMap(Map):
    """Everyone is given everything, and keeps what its own index made, or one beyond the width."""

    redistribution = Redistribution.UNION

    def restore_list(self, name: str, items: list[object]) -> None:
        width = self.topology.by_id[self.subtask.operator].parallelism
        mine = [
            item
            for item in items
            if isinstance(item, tuple) and self._maker(item[0]) % width == self.subtask.index
        ]
        super().restore_list(name, list(mine))

    def _maker(self, name: str) -> int:
        return int(name.removeprefix(f"{self.subtask.operator}-").split("@", maxsplit=1)[0])


class Keyed(Operator):
    """Numbers the rows of each key."""

    def __init__(self, world: World, topology: Topology, subtask: SubtaskId) -> None:
        super().__init__(world, topology, subtask)
        self.state: dict[int, tuple[int, tuple[tuple[str, int], ...]]] = {}
        self.rules: Counter[Input] = Counter()

    def process(self, row: Input) -> list[Input]:
        split, offset, tag, key, _ = row
        count, newest = self.state.get(key, (0, ()))
        offsets = dict(newest)
        lane = f"{tag}/{split}"
        if self.world.order_is_checked and offsets.get(lane, -1) >= offset:
            self.world.violated(f"{self.subtask} got {row} after offset {offsets[lane]}")
        if self.world.time_is_checked and time_of(row) < self.watermark:
            self.world.violated(f"{self.subtask} got {row} behind watermark {self.watermark}")
        offsets[lane] = offset
        self.state[key] = (count + 1, tuple(sorted(offsets.items())))
        return [(split, offset, tag, key, count + 1)]

    def process_rule(self, row: Input) -> None:
        self.rules[row] += 1

    def capture(self, checkpoint: CheckpointId) -> Captured:
        del checkpoint
        keyed: dict[int, dict[int, tuple[int, tuple[tuple[str, int], ...]]]] = {}
        for key, value in self.state.items():
            keyed.setdefault(GROUPS[key], {})[key] = value
        rules = tuple(sorted(self.rules.items()))
        lists = {"rules": (Redistribution.BROADCAST, rules)} if rules else {}
        return Captured(keyed=keyed, lists=dict(lists))

    def restore_keyed(self, key: int, state: tuple[int, tuple[tuple[str, int], ...]]) -> None:
        if key in self.state:
            self.world.violated(f"{self.subtask} inherits key {key} twice")
        self.state[key] = state

    def restore_list(self, name: str, items: list[object]) -> None:
        assert name == "rules", name
        for item in items:
            assert isinstance(item, tuple), item
            self.rules[item[0]] += item[1]

    def ended(self) -> None:
        for key, (count, _) in self.state.items():
            self.world.final[key] = count
        self.world.rules[self.subtask] = dict(self.rules)


class Sink(Operator):
    """Writes into a transaction that the driver commits."""

    def __init__(
        self,
        world: World,
        topology: Topology,
        subtask: SubtaskId,
        external: External,
        owner: Owner,
    ) -> None:
        super().__init__(world, topology, subtask)
        self.external = external
        self.owner = owner
        self.opened = 0
        self.current = ""
        self.waiting: list[Transaction] = []

    def process(self, row: Input) -> list[Input]:
        if not self.current:
            self.opened += 1
            self.current = f"{self.subtask}@{self.owner[0]}.{self.owner[1]}.{self.opened}"
        self.external.write(self.current, self.subtask, self.owner, row)
        return []

    def capture(self, checkpoint: CheckpointId) -> Captured:
        if self.current:
            self.external.pre_commit(self.current)
            self.waiting.append(Transaction(self.subtask.operator, checkpoint, self.current))
            self.current = ""
        return Captured(transactions=tuple(self.waiting))

    def completed(self, checkpoint: CheckpointId) -> None:
        self.waiting = [t for t in self.waiting if t.checkpoint > checkpoint]
