"""Carries elements and credits between slots, in order on each channel, late, or not at all.

Delays are drawn for each element, so channels overtake each other while each keeps its order. What
a broken connection carried stays lost for the runs that used it, and both ends learn of it. A run
is an (epoch, attempt): what is left of an older run is dropped by the receiving slot.
"""

from collections.abc import Callable, Mapping

from simulation.world import World
from weir.core.ids import ChannelId, SlotId
from weir.exchange import Arrived, Broken, Credited, Event, Run

Pair = tuple[SlotId, SlotId]


class SimulatedExchange:
    """One slot's connections, as the production slot expects them of ``weir.exchange``."""

    def __init__(self, name: SlotId, network: "Network", wake: Callable[[], None]) -> None:
        self.name = name
        self.wake = wake
        self.wait_seconds = 0.0
        """How long the last poll would have waited; zero if it brought something."""
        self._network = network
        self._arrived: list[Event] = []

    def set_peers(self, peers: Mapping[SlotId, tuple[str, int]]) -> None:
        """Names are addresses here."""

    def send(self, to: SlotId, run: Run, channel: ChannelId, element: object) -> None:
        arrived = Arrived(self.name, run, channel, element)
        self._network.send(self.name, to, run, ("data", run, channel), arrived)

    def grant(self, to: SlotId, run: Run, channel: ChannelId, batches: int, rows: int) -> None:
        credited = Credited(run, channel, batches, rows)
        self._network.send(self.name, to, run, ("credit", run, channel), credited)

    def drop(self, run: Run) -> None:
        """What is on its way is dropped by its receiver."""

    def poll(self, timeout: float) -> list[Event]:
        arrived, self._arrived = self._arrived, []
        self.wait_seconds = 0.0 if arrived else timeout
        return arrived

    def receive(self, event: Event) -> None:
        self._arrived.append(event)
        self.wake()


class Network:
    """All connections between slots."""

    def __init__(self, world: World, delays: tuple[int, int]) -> None:
        self.world = world
        self._delays = delays
        self._exchanges: dict[SlotId, SimulatedExchange] = {}
        self._carried: dict[Pair, dict[Run, None]] = {}
        """The runs whose elements each connection has carried."""
        self._broken: set[tuple[Pair, Run]] = set()
        self._last: dict[tuple[str, Run, ChannelId], int] = {}

    def connect(self, name: SlotId, wake: Callable[[], None]) -> SimulatedExchange:
        self._exchanges[name] = SimulatedExchange(name, self, wake)
        return self._exchanges[name]

    def send(
        self, sender: SlotId, to: SlotId, run: Run, lane: tuple[str, Run, ChannelId], event: Event
    ) -> None:
        pair = _pair(sender, to)
        self._carried.setdefault(pair, {})[run] = None
        due = max(self.world.now + self.world.delay(*self._delays), self._last.get(lane, 0))
        self._last[lane] = due
        self.world.at(due - self.world.now, self._deliver, pair, to, run, event)

    def _deliver(self, pair: Pair, to: SlotId, run: Run, event: Event) -> None:
        exchange = self._exchanges.get(to)
        if exchange is not None and (pair, run) not in self._broken:
            exchange.receive(event)

    def connections(self, epoch: int) -> list[Pair]:
        """Those that carry something of that epoch, between slots that live."""
        return [
            pair
            for pair, runs in self._carried.items()
            if all(name in self._exchanges for name in pair)
            and any(run[0] == epoch and (pair, run) not in self._broken for run in runs)
        ]

    def break_connection(self, pair: Pair) -> None:
        """Whatever is on the wire is lost, and both ends notice, each in its own time."""
        runs = [run for run in self._carried.get(pair, ()) if (pair, run) not in self._broken]
        self._broken.update((pair, run) for run in runs)
        for end, peer in (pair, pair[::-1]):
            broken = Broken(peer, "the connection was reset", frozenset(runs))
            self.world.at(self.world.delay(1, 20), self._notice, end, broken)

    def _notice(self, end: SlotId, broken: Broken) -> None:
        exchange = self._exchanges.get(end)
        if exchange is not None:
            exchange.receive(broken)

    def lose_slot(self, name: SlotId) -> None:
        self._exchanges.pop(name, None)
        for pair in [pair for pair in self._carried if name in pair]:
            self.break_connection(pair)
            del self._carried[pair]


def _pair(a: SlotId, b: SlotId) -> Pair:
    return (a, b) if a < b else (b, a)
