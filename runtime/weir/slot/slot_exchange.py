"""Carries elements and credits between subtasks, inside the slot and through the exchange.

A channel inside a slot behaves as one between slots: elements wait until the turn is over, then
arrive in order. What arrives before its receiver is ready (the two ends of a channel are deployed
by two processes) is kept for it; credits bound how much that can be.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Protocol

from weir.core.ids import ChannelId, SlotId, SubtaskId
from weir.core.topology import Topology
from weir.exchange import Arrived, Credited, Event, Run
from weir.wire.authenticated_sockets import Address
from weir.wire.control_messages import DeploySubtasks


class PeerExchange(Protocol):
    """The connections to other slots, as ``weir.exchange.Exchange`` provides them."""

    name: SlotId

    def set_peers(self, peers: Mapping[SlotId, Address]) -> None: ...
    def send(self, to: SlotId, run: Run, channel: ChannelId, element: object) -> None: ...
    def grant(self, to: SlotId, run: Run, channel: ChannelId, batches: int, rows: int) -> None: ...
    def drop(self, run: Run) -> None: ...
    def wake(self) -> None: ...
    def poll(self, timeout: float) -> list[Event]: ...


class SlotExchange:
    """The exchange, extended to channels inside the slot."""

    def __init__(self, exchange: PeerExchange, topology: Topology) -> None:
        self._exchange = exchange
        self._topology = topology
        self._slots: dict[SubtaskId, SlotId] = {}
        self._runs: dict[SubtaskId, Run] = {}
        self._local: deque[Event] = deque()
        self._early: dict[tuple[SubtaskId, Run], list[tuple[ChannelId, object]]] = defaultdict(list)

    # -- placement

    def place(self, deploy: DeploySubtasks) -> None:
        """A deployment names the slot of every subtask; only its own subtasks start anew."""
        run = (int(deploy.epoch), int(deploy.attempt))
        self._slots = {seated.subtask: seated.slot for seated in deploy.subtask_addresses}
        self._exchange.set_peers({s.slot: (s.host, s.port) for s in deploy.subtask_addresses})
        for state_assignment in deploy.state_assignments:
            self._runs[state_assignment.subtask] = run
        awaited = [k for k in self._early if k[1] >= run or self.is_current(*k)]
        self._early = defaultdict(list, {key: self._early[key] for key in awaited})

    def remove(self, subtask: SubtaskId) -> None:
        """Its attempt is over; elements of a newer attempt stay."""
        run = self._runs.pop(subtask, None)
        if run is not None:
            self._early.pop((subtask, run), None)

    def is_current(self, subtask: SubtaskId, run: Run) -> bool:
        return self._runs.get(subtask) == run

    def connects(self, subtask: SubtaskId, peer: str) -> bool:
        """Whether a channel joins the subtask with one of that slot."""
        topology = self._topology
        ends = [topology.receiver(channel) for channel in topology.outputs[subtask]]
        ends += [topology.sender(channel) for channel in topology.inputs[subtask]]
        return any(self._slots.get(end) == peer for end in ends)

    # -- elements: a subtask without a slot was in one that is lost, and the driver resets both ends

    def send(self, run: Run, channel: ChannelId, element: object) -> None:
        to = self._slots.get(self._topology.receiver(channel))
        if to == self._exchange.name:
            self._local.append(Arrived(to, run, channel, element))
        elif to is not None:
            self._exchange.send(to, run, channel, element)

    def grant(self, run: Run, channel: ChannelId, batches: int, rows: int) -> None:
        to = self._slots.get(self._topology.sender(channel))
        if to == self._exchange.name:
            self._local.append(Credited(run, channel, batches, rows))
        elif to is not None:
            self._exchange.grant(to, run, channel, batches, rows)

    def drop(self, run: Run) -> None:
        """Forget what is queued of an attempt that is over."""
        self._exchange.drop(run)

    def wake(self) -> None:
        """End the wait of ``collect``. For any thread."""
        self._exchange.wake()

    @property
    def has_local(self) -> bool:
        return bool(self._local)

    def collect(self, wait: float) -> list[Event]:
        """What has arrived, from inside the slot and from other slots."""
        arrived = list(self._local)
        self._local.clear()
        arrived.extend(self._exchange.poll(0.0 if arrived else wait))
        return arrived

    # -- what came too early

    def keep_early(self, run: Run, channel: ChannelId, element: object) -> None:
        """Keep what a newer attempt sends; drop what an older one sends."""
        receiver = self._topology.receiver(channel)
        if run >= self._runs.get(receiver, (0, 0)):
            self._early[receiver, run].append((channel, element))

    def take_early(self, subtask: SubtaskId, run: Run) -> list[tuple[ChannelId, object]]:
        return self._early.pop((subtask, run), [])
