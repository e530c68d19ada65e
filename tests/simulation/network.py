"""Carries elements and credits between subtasks, in order on each channel, late, or not at all.

A channel belongs to one run, an (epoch, attempt); what is left of an older run reaches nobody. A
broken connection stays broken for its run and both ends are told. Delays are drawn per element, so
channels overtake each other freely while each keeps its own order.
"""

from collections import defaultdict
from typing import Protocol

from simulation.scenario import Scenario
from simulation.world import World
from weir.core.ids import ChannelId, SubtaskId
from weir.core.topology import Topology

Run = tuple[int, int]
"""(epoch, attempt): names of two drivers' attempts never meet."""


class Host(Protocol):
    """A slot, as far as the network is concerned."""

    alive: bool

    def arrive(self, run: Run, channel: ChannelId, element: object) -> None: ...
    def credited(self, run: Run, channel: ChannelId, batches: int) -> None: ...
    def disconnected(self, run: Run, subtask: SubtaskId) -> None: ...


class Network:
    """All connections between slots."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.world = world
        self.scenario = scenario
        self.hosts: dict[tuple[Run, SubtaskId], Host] = {}
        self.waiting: dict[tuple[Run, ChannelId], list[object]] = defaultdict(list)
        self.broken: set[tuple[Run, ChannelId]] = set()
        self._last: dict[tuple[str, Run, ChannelId], int] = {}

    def attach(self, run: Run, subtask: SubtaskId, host: Host, topology: Topology) -> None:
        """The subtask is there: whatever its senders have sent already may arrive."""
        self.hosts[run, subtask] = host
        for channel in topology.inputs[subtask]:
            for element in self.waiting.pop((run, channel), []):
                host.arrive(run, channel, element)

    def detach(self, run: Run, subtask: SubtaskId) -> None:
        self.hosts.pop((run, subtask), None)

    def send(self, run: Run, channel: ChannelId, element: object, to: SubtaskId) -> None:
        due = self._in_order(("data", run, channel))
        self.world.at(due, self._deliver, run, channel, element, to)

    def grant(self, run: Run, channel: ChannelId, batches: int, to: SubtaskId) -> None:
        due = self._in_order(("credit", run, channel))
        self.world.at(due, self._credit, run, channel, batches, to)

    def _in_order(self, lane: tuple[str, Run, ChannelId]) -> int:
        due = self.world.now + self.world.delay(*self.scenario.delays)
        due = max(due, self._last.get(lane, 0))
        self._last[lane] = due
        return due - self.world.now

    def _deliver(self, run: Run, channel: ChannelId, element: object, to: SubtaskId) -> None:
        if (run, channel) in self.broken:
            return
        host = self.hosts.get((run, to))
        if host is None:
            self.waiting[run, channel].append(element)
        elif host.alive:
            host.arrive(run, channel, element)

    def _credit(self, run: Run, channel: ChannelId, batches: int, to: SubtaskId) -> None:
        host = self.hosts.get((run, to))
        if host is not None and host.alive and (run, channel) not in self.broken:
            host.credited(run, channel, batches)

    def break_channel(self, run: Run, channel: ChannelId, topology: Topology) -> None:
        """Whatever is on the wire is lost, and both ends notice, each in its own time."""
        if (run, channel) in self.broken:
            return
        self.broken.add((run, channel))
        for end in (topology.sender(channel), topology.receiver(channel)):
            host = self.hosts.get((run, end))
            if host is not None:
                self.world.at(self.world.delay(1, 20), host.disconnected, run, end)

    def lose_host(self, run: Run, subtask: SubtaskId, topology: Topology) -> None:
        self.detach(run, subtask)
        for channel in (*topology.inputs[subtask], *topology.outputs[subtask]):
            self.break_channel(run, channel, topology)
