"""A few connected exchanges in one process, which the test's own thread polls in turn."""

from collections.abc import Callable
from time import monotonic

import pyarrow as pa

from weir.core.ids import ChannelId, EdgeId, SlotId
from weir.exchange import Arrived, Broken, Credited, Event, Exchange, Run
from weir.wire.authenticated_sockets import Tls

SECRET = b"the secret of this very job....."
RUN: Run = (1, 1)
CHANNEL = ChannelId(EdgeId("e"), 0, 1)
OTHER_CHANNEL = ChannelId(EdgeId("e"), 1, 1)
A, B = SlotId("slot-a"), SlotId("slot-b")

_LONG_ENOUGH = 20.0


def numbers(first: int, rows: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(first, first + rows), pa.int64())})


class LinkedSlots:
    """Opens slots and records all events of each."""

    def __init__(self, tls: Tls | None = None) -> None:
        self._tls = tls
        self._open: dict[SlotId, Exchange] = {}
        self.heard: dict[SlotId, list[Event]] = {}
        self.most_at_once = 0

    def open(self, name: SlotId, secret: bytes = SECRET) -> Exchange:
        exchange = self._open[name] = Exchange(name, "127.0.0.1", secret, self._tls)
        self.heard.setdefault(name, [])
        self.introduce()
        return exchange

    def introduce(self) -> None:
        addresses = {name: exchange.address for name, exchange in self._open.items()}
        for exchange in self._open.values():
            exchange.set_peers(addresses)

    def kill(self, name: SlotId) -> None:
        """As its host does to a process: every socket is closed without notice."""
        self._open.pop(name).close()

    def close(self) -> None:
        for name in list(self._open):
            self.kill(name)

    def poll(self, name: SlotId) -> list[Event]:
        """One poll that does not wait."""
        return self._open[name].poll(0)

    def poll_until(self, done: Callable[[], bool]) -> None:
        deadline = monotonic() + _LONG_ENOUGH
        while not done():
            assert monotonic() < deadline, f"these are all events: {self.heard}"
            for name, exchange in self._open.items():
                news = exchange.poll(0.001)
                self.heard[name] += news
                self.most_at_once = max(self.most_at_once, len(news))

    def elements(self, at: SlotId, channel: ChannelId = CHANNEL, run: Run = RUN) -> list[object]:
        return [
            event.element
            for event in self.heard[at]
            if isinstance(event, Arrived) and (event.run, event.channel) == (run, channel)
        ]

    def credits(self, at: SlotId) -> list[Credited]:
        return [event for event in self.heard[at] if isinstance(event, Credited)]

    def breaks(self, at: SlotId) -> list[Broken]:
        return [event for event in self.heard[at] if isinstance(event, Broken)]
