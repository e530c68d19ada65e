"""Wakes a thread that waits in a selector, from any other thread."""

import socket
from contextlib import suppress
from threading import Lock


class Waker:
    """Readable from the first ``wake`` until ``clear``."""

    def __init__(self) -> None:
        self.readable, self._wake_end = socket.socketpair()
        self.readable.settimeout(0)
        self._wake_end.settimeout(0)
        self._lock = Lock()

    def wake(self) -> None:
        with self._lock, suppress(BlockingIOError):
            if self._wake_end.fileno() >= 0:
                self._wake_end.send(b"\x00")

    def clear(self) -> None:
        with suppress(BlockingIOError):
            self.readable.recv(4096)

    def close(self) -> None:
        with self._lock:
            self._wake_end.close()
        self.readable.close()
