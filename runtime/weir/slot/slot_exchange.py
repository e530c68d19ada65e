"""Where the subtasks of a job sit, and how an element gets from one to another.

A channel inside a slot behaves as one between slots: elements wait until the turn is over, then
arrive in order. What arrives before its receiver is ready (the two ends of a channel are launched
by two processes) is kept for it; credits bound how much that can be.
"""

from collections import defaultdict, deque

from weir.core.ids import ChannelId, SlotId, SubtaskId
from weir.core.topology import Topology
from weir.exchange import Arrived, Broken, Credited, Exchange, Run
from weir.wire.control_messages import DeploySubtasks

News = Arrived | Credited | Broken


class SlotExchange:
    """The exchange, extended to the slot's own subtasks."""

    def __init__(self, exchange: Exchange, topology: Topology) -> None:
        self._exchange = exchange
        self._topology = topology
        self._seats: dict[SubtaskId, SlotId] = {}
        self._runs: dict[SubtaskId, Run] = {}
        self._local: deque[News] = deque()
        self._early: dict[tuple[SubtaskId, Run], list[tuple[ChannelId, object]]] = defaultdict(list)

    # -- addresses

    def seat(self, deploy: DeploySubtasks) -> None:
        """A deployment says where everybody sits; only its own subtasks begin anew."""
        run = (int(deploy.epoch), int(deploy.attempt))
        self._seats = {seated.subtask: seated.slot for seated in deploy.subtask_addresses}
        self._exchange.set_peers({s.slot: (s.host, s.port) for s in deploy.subtask_addresses})
        for state_assignment in deploy.state_assignments:
            self._runs[state_assignment.subtask] = run
        awaited = [k for k in self._early if k[1] >= run or self.is_current(*k)]
        self._early = defaultdict(list, {key: self._early[key] for key in awaited})

    def unseat(self, subtask: SubtaskId) -> None:
        """Its attempt is over, and with it what was kept for that; a newer one's is not."""
        run = self._runs.pop(subtask, None)
        if run is not None:
            self._early.pop((subtask, run), None)

    def is_current(self, subtask: SubtaskId, run: Run) -> bool:
        return self._runs.get(subtask) == run

    def talks_to(self, subtask: SubtaskId, peer: str) -> bool:
        """Whether a channel joins the subtask with one of that slot."""
        topology = self._topology
        ends = [topology.receiver(channel) for channel in topology.outputs[subtask]]
        ends += [topology.sender(channel) for channel in topology.inputs[subtask]]
        return any(self._seats.get(end) == peer for end in ends)

    # -- elements: whoever has no seat is in a slot that was lost, and the driver resets both ends

    def send(self, run: Run, channel: ChannelId, element: object) -> None:
        to = self._seats.get(self._topology.receiver(channel))
        if to == self._exchange.name:
            self._local.append(Arrived(to, run, channel, element))
        elif to is not None:
            self._exchange.send(to, run, channel, element)

    def grant(self, run: Run, channel: ChannelId, batches: int) -> None:
        to = self._seats.get(self._topology.sender(channel))
        if to == self._exchange.name:
            self._local.append(Credited(run, channel, batches))
        elif to is not None:
            self._exchange.grant(to, run, channel, batches)

    @property
    def has_local(self) -> bool:
        return bool(self._local)

    def collect(self, wait: float) -> list[News]:
        """What has arrived, from within and from outside."""
        news = list(self._local)
        self._local.clear()
        news.extend(self._exchange.poll(0.0 if news else wait))
        return news

    # -- what came too early

    def keep_early(self, run: Run, channel: ChannelId, element: object) -> None:
        """Keep what a newer attempt sends; an older one's is nobody's."""
        receiver = self._topology.receiver(channel)
        if run >= self._runs.get(receiver, (0, 0)):
            self._early[receiver, run].append((channel, element))

    def early(self, subtask: SubtaskId, run: Run) -> list[tuple[ChannelId, object]]:
        return self._early.pop((subtask, run), [])
