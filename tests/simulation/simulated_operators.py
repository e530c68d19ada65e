"""User code of a simulated job: sources, maps, keyed counts, broadcast rules, two-phase sinks.

Each operator keeps state that shows a lost, repeated or reordered row: keyed counts number the rows
of a key, maps count what passed, broadcast state remembers every rule. They implement the port that
the production slot expects, and some fail now and then as user code does.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from simulation.external import External, FencedOut
from simulation.row_values import GROUPS, Content, Row, Rows, key_of, time_of
from simulation.scenario import MAX_PARALLELISM, Chances
from simulation.world import World
from weir.core.changelog import NO_POSITION, START, Position
from weir.core.enumerator import AssignSplit, Message
from weir.core.ids import NO_CHECKPOINT, CheckpointId, EdgeId, Millis, SplitId
from weir.core.key_groups import owner_of, range_of
from weir.core.snapshots import Redistribution, Transaction
from weir.core.topology import EdgeKind, Topology
from weir.dataflow.physical import SourceHead
from weir.ports.operators import (
    Batch,
    Captured,
    KeyedSnapshot,
    ListSnapshot,
    RestoredState,
    TaskInfo,
)
from weir.ports.sources import Discovery
from weir.ports.user_code_errors import UserCodeFailed
from weir.slot.event_time import FOREVER, LONG_AGO
from weir.slot.relay import Stateless
from weir.slot.source_operator import SourceOperator

KeyState = tuple[int, tuple[tuple[str, int], ...]]
"""The count of a key, and the newest offset by split and tag."""


@dataclass(frozen=True)
class OperatorEnvironment:
    """What an operator finds in its world."""

    world: World
    chances: Chances
    topology: Topology
    external: External
    place: TaskInfo

    def maybe_fail(self, chance: float, what: str) -> None:
        if self.world.chance(chance):
            self.world.saw(f"fault: {what}")
            raise UserCodeFailed(what, str(self.place.subtask))


class SimulatedOperator(Stateless):
    """What every operator but a source shares."""

    def __init__(self, env: OperatorEnvironment) -> None:
        self.env = env
        self.world = env.world
        self.subtask = env.place.subtask
        self.watermark = LONG_AGO

    def process(self, edge: EdgeId, batch: Batch) -> Iterable[Batch]:
        out: list[Row] = []
        for row in batch:
            self.env.maybe_fail(self.env.chances.user_code, "user code fails")
            out += self.process_row(edge, row)
        return (Rows(out),)

    def process_row(self, edge: EdgeId, row: Row) -> list[Row]:
        raise NotImplementedError

    def advance(self, watermark: Millis) -> None:
        if watermark < self.watermark:
            self.world.violated(f"the time of {self.subtask} went back to {watermark}")
        self.watermark = watermark

    def finish(self) -> Iterable[Batch]:
        rows = self.flush()
        if self.world.is_news(self.subtask.operator, self.env.place.epoch):
            self.ended()
        return rows

    def ended(self) -> None:
        """The last row has been processed."""

    def capture(self, checkpoint: CheckpointId) -> Captured:
        self.env.maybe_fail(self.env.chances.sync_failure, "synchronous part fails")
        return self.state(checkpoint)

    def state(self, checkpoint: CheckpointId) -> Captured:
        del checkpoint
        return Captured()

    def restore(self, restored_state: RestoredState) -> None:
        if restored_state.watermark is not None:
            self.watermark = restored_state.watermark
        self.restore_state(restored_state)

    def restore_state(self, state: RestoredState) -> None:
        super().restore(state)

    def completed(self, checkpoint: CheckpointId) -> None:
        del checkpoint
        self.env.maybe_fail(self.env.chances.notification, "notification fails")


class SplitReader:
    """Reads one split, a row or two at a time."""

    def __init__(self, source: "SimulatedSource", split: int, at: int) -> None:
        self._source = source
        self._split = split
        self._at = at
        self.rest_ms = 0

    def read(self, rows: int) -> Rows | None:
        return self._source.read(self, min(rows, self._source.world.rng.randint(1, 2)))

    def take(self, count: int) -> Rows:
        split, first = self._split, self._at
        self._at = min(first + count, self._source.rows)
        tag = self._source.tag
        return Rows((split, o, tag, key_of(split, o), 0) for o in range(first, self._at))

    @property
    def position(self) -> str:
        return str(self._at)

    @property
    def is_exhausted(self) -> bool:
        return self._at >= self._source.rows

    def close(self) -> None:
        """Nothing is held."""


class SimulatedSource:
    """The splits of one subtask, as ``weir.ports.sources.Source`` describes them."""

    schema = None
    is_endless = False
    is_bounded = True

    def __init__(self, env: OperatorEnvironment, rows: int, interval_ms: int) -> None:
        self.world = env.world
        self.subtask = env.place.subtask
        self.tag = str(env.place.subtask.operator)
        self.rows = rows
        self.opened: set[int] = set()
        self.is_stopped = False
        """Behind the barrier of a savepoint that ends the job."""
        self.operator: SourceOperator | None = None
        self._interval_ms = interval_ms
        self._ready_at = 0

    def discover(self, seen: str) -> Discovery:
        raise NotImplementedError(seen)

    def open(self, split: SplitId, position: str) -> SplitReader:
        number = int(split)
        if number in self.opened:
            self.world.violated(f"{self.subtask} was given split {number} twice")
        self.opened.add(number)
        return SplitReader(self, number, int(position or 0))

    def read(self, reader: SplitReader, count: int) -> Rows | None:
        if self.is_stopped:
            self.world.violated(f"{self.subtask} reads on behind its last savepoint")
        if self.world.now < self._ready_at:
            reader.rest_ms = self._ready_at - self.world.now
            return None
        self._ready_at = self.world.now + self._interval_ms
        rows = reader.take(count)
        assert self.operator is not None
        if rows and time_of(rows[0]) < self.operator.low_watermark() < FOREVER:
            self.world.saw("a source went back to an older split")
            self.world.time_is_checked = False
        return rows


class SimulatedSourceOperator(SourceOperator):
    """The production source operator, over simulated splits."""

    def __init__(self, env: OperatorEnvironment, rows: int, interval_ms: int) -> None:
        self.source = SimulatedSource(env, rows, interval_ms)
        super().__init__(SourceHead(self.source, event_time="time"))
        self.source.operator = self
        self._here = env

    def latest_time(self, batch: Batch) -> Millis:
        """Rounded down, so that not every row brings a watermark."""
        return Millis(time_of(batch[-1]) // 4 * 4)

    def answered(self, message: Message) -> None:
        if self.is_idle and isinstance(message, AssignSplit):
            self._here.world.saw("an idle source went on")
            self._here.world.time_is_checked = False
        super().answered(message)

    def capture(self, checkpoint: CheckpointId) -> Captured:
        self._here.maybe_fail(self._here.chances.sync_failure, "synchronous part fails")
        return super().capture(checkpoint)

    def completed(self, checkpoint: CheckpointId) -> None:
        super().completed(checkpoint)
        self._here.maybe_fail(self._here.chances.notification, "notification fails")


class MapOperator(SimulatedOperator):
    """Passes rows on, some of them a little later, and counts them in list state."""

    redistribution = Redistribution.SPLIT

    def __init__(self, env: OperatorEnvironment) -> None:
        super().__init__(env)
        self.name = f"{self.subtask}@{(env.place.epoch, env.place.attempt)}"
        self.counts: dict[str, int] = {}
        self.buffer: list[Row] = []

    def process_row(self, edge: EdgeId, row: Row) -> list[Row]:
        del edge
        self.counts[self.name] = self.counts.get(self.name, 0) + 1
        self.buffer.append(row)
        return [] if self.world.rng.random() < 0.3 else self._take()

    def _take(self) -> list[Row]:
        rows, self.buffer = self.buffer, []
        return rows

    def flush(self) -> Iterable[Batch]:
        return (Rows(self._take()),)

    def state(self, checkpoint: CheckpointId) -> Captured:
        del checkpoint
        items: Sequence[Batch] = tuple(sorted(self.counts.items()))
        return Captured(lists=(ListSnapshot("passed", self.redistribution, items),))

    def restore_state(self, state: RestoredState) -> None:
        for name, count in self.own(state.lists.get("passed", ())):
            if name in self.counts:
                self.world.violated(f"{self.subtask} inherits {name} twice")
            self.counts[name] = count

    def own(self, items: Iterable[Batch]) -> Iterable[tuple[str, int]]:
        return items

    def ended(self) -> None:
        self.world.passed[self.subtask] = sum(self.counts.values())


class UnionMapOperator(MapOperator):
    """Is given all items, and keeps those of its index, or of an index beyond the width."""

    redistribution = Redistribution.UNION

    def own(self, items: Iterable[Batch]) -> Iterable[tuple[str, int]]:
        width = self.env.place.parallelism
        return [item for item in items if self._maker(item[0]) % width == self.subtask.index]

    def _maker(self, name: str) -> int:
        return int(name.removeprefix(f"{self.subtask.operator}-").split("@", maxsplit=1)[0])


class KeyedOperator(SimulatedOperator):
    """Numbers the rows of each key; rows of a broadcast edge are rules."""

    def __init__(self, env: OperatorEnvironment) -> None:
        super().__init__(env)
        self.keys: dict[int, KeyState] = {}
        self.rules: Counter[Row] = Counter()
        self.captures: dict[int, dict[int, KeyState]] = {}
        self.position = START

    def process_row(self, edge: EdgeId, row: Row) -> list[Row]:
        if self.env.topology.edge_by_id[edge].kind is EdgeKind.BROADCAST:
            self.rules[row] += 1
            return []
        split, offset, tag, key, _ = row
        if owner_of(GROUPS[key], self.env.place.parallelism, MAX_PARALLELISM) != self.subtask.index:
            self.world.violated(f"{self.subtask} processed a row of key group {GROUPS[key]}")
        count, newest = self.keys.get(key, (0, ()))
        offsets = dict(newest)
        lane = f"{tag}/{split}"
        if self.world.order_is_checked and offsets.get(lane, -1) >= offset:
            self.world.violated(f"{self.subtask} got {row} after offset {offsets[lane]}")
        if self.world.time_is_checked and time_of(row) < self.watermark:
            self.world.violated(f"{self.subtask} got {row} behind watermark {self.watermark}")
        offsets[lane] = offset
        self.keys[key] = (count + 1, tuple(sorted(offsets.items())))
        return [(split, offset, tag, key, count + 1)]

    def cut(self) -> Captured:
        self.world.saw("cut between checkpoints")
        return replace(self.state(NO_CHECKPOINT), lists=())

    def truncated(self, position: Position) -> None:
        self.captures = {p: keys for p, keys in self.captures.items() if p >= position}

    def state(self, checkpoint: CheckpointId) -> Captured:
        keys = dict(self.keys)
        is_logged = self.env.place.is_logged
        self.position = Position(self.position + 1)
        self.captures[self.position if is_logged else checkpoint] = keys
        groups = range_of(self.subtask.index, self.env.place.parallelism, MAX_PARALLELISM)

        def since(base: CheckpointId) -> Content | None:
            before = self.captures.get(base)
            if before is None:
                return None
            changed = {k: state for k, state in keys.items() if before.get(k) != state}
            return Content(changed, "keys", is_changes=True)

        piece = KeyedSnapshot(groups, lambda: Content(keys, "keys"), "keys", since)
        items: Sequence[Batch] = tuple(sorted(self.rules.items()))
        rules = ListSnapshot("rules", Redistribution.BROADCAST, items)
        position = self.position if is_logged else NO_POSITION
        return Captured((piece,), (rules,), position=position)

    def restore_state(self, state: RestoredState) -> None:
        for groups, content in state.keyed:
            for key, counted in content.value.items():
                if GROUPS[key] in groups:
                    self._restore_key(key, counted, is_change=content.is_changes)
        begun = START if self.env.place.is_logged else state.checkpoint
        self.captures[begun] = dict(self.keys)
        items: Iterable[Batch] = state.lists.get("rules", ())
        for rule, times in items:
            self.rules[rule] += times

    def _restore_key(self, key: int, counted: KeyState, *, is_change: bool) -> None:
        if key in self.keys and not is_change:
            self.world.violated(f"{self.subtask} inherits key {key} twice")
        self.keys[key] = counted

    def ended(self) -> None:
        for key, (count, _) in self.keys.items():
            self.world.final[key] = count
        self.world.rules[self.subtask] = dict(self.rules)


class SinkOperator(SimulatedOperator):
    """Writes into a transaction that the driver commits."""

    def __init__(self, env: OperatorEnvironment) -> None:
        super().__init__(env)
        self.owner = (env.place.epoch, env.place.attempt)
        self.opened = 0
        self.current = ""
        self.waiting: list[Transaction] = []

    def process_row(self, edge: EdgeId, row: Row) -> list[Row]:
        del edge
        if not self.current:
            self.opened += 1
            self.current = f"{self.subtask}@{self.owner[0]}.{self.owner[1]}.{self.opened}"
        try:
            self.env.external.write(self.current, self.subtask, self.owner, row)
        except FencedOut as fenced:
            raise UserCodeFailed("write", str(row)) from fenced
        return []

    def state(self, checkpoint: CheckpointId) -> Captured:
        if self.current:
            self.env.external.pre_commit(self.current)
            self.waiting.append(Transaction(self.subtask.operator, checkpoint, self.current))
            self.current = ""
        return Captured(transactions=tuple(self.waiting))

    def completed(self, checkpoint: CheckpointId) -> None:
        super().completed(checkpoint)
        self.waiting = [t for t in self.waiting if t.checkpoint > checkpoint]
