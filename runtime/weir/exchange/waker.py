"""Wakes a thread that waits in a selector, from any other thread."""

import socket
from contextlib import suppress
from threading import Lock


class Waker:
    """Readable from the first ring until it is hushed."""

    def __init__(self) -> None:
        self.listening, self._ringing = socket.socketpair()
        self.listening.settimeout(0)
        self._ringing.settimeout(0)
        self._lock = Lock()

    def ring(self) -> None:
        with self._lock, suppress(BlockingIOError):
            if self._ringing.fileno() >= 0:
                self._ringing.send(b"\x00")

    def hush(self) -> None:
        with suppress(BlockingIOError):
            self.listening.recv(4096)

    def close(self) -> None:
        with self._lock:
            self._ringing.close()
        self.listening.close()
