"""Carries values over an authenticated socket, one frame each, from any thread to one reader.

Sending never waits for the other end: a separate thread writes what is queued, so that a
peer that has stopped reading blocks no thread here. If it does not read in time, the socket's
timeout breaks the link, and the reader gets an error. A message that is too long for a frame is
refused before anything of it is queued.
"""

import socket
import threading
from contextlib import suppress
from queue import SimpleQueue

from weir.errors import JobRejected
from weir.wire import frames
from weir.wire.frames import read_frame, write_frame
from weir.wire.json_codec import Undecodable, dumps, loads

_MESSAGE = 1


class MessageTooLong(JobRejected):
    """No frame holds it, and none would if it were sent again."""

    def __init__(self, what: str, length: int) -> None:
        super().__init__(
            f"the message {what} between driver and slot has {length} bytes",
            f"the limit is {frames.FRAME_LIMIT}",
            "lower checkpointing.inlineThreshold so that state goes into files, or raise the "
            "parallelism so that each subtask has less to report",
        )


class MessageLink:
    """Values in, values out, in order."""

    def __init__(self, sock: socket.socket, name: str) -> None:
        self._sock = sock
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name=f"weir-link-{name}", daemon=True)
        self._writer.start()

    def send(self, message: object) -> None:
        payload = dumps(message)
        if len(payload) > frames.FRAME_LIMIT:
            raise MessageTooLong(_name_of(message), len(payload))
        self._queue.put(payload)

    def receive(self) -> object:
        """Wait for the next message; a link that has ended, however, is a ``ConnectionError``."""
        try:
            frame = read_frame(self._sock)
        except ConnectionError:
            raise
        except OSError as problem:  # the kernel gave the peer up, or the link was closed here
            raise ConnectionError(str(problem)) from problem
        try:
            return loads(bytes(frame.payload))
        except Undecodable as problem:
            raise ConnectionError(f"the peer sent an unreadable message: {problem}") from problem

    def close(self) -> None:
        """Write what is queued, then end the link."""
        self._queue.put(None)
        self._writer.join(timeout=5.0)
        self.cut()
        self._sock.close()

    def cut(self) -> None:
        """End the link at once; its reader gets an error."""
        with suppress(OSError):
            # Not TLS's own shutdown, which would change the object under the thread that reads.
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def _write(self) -> None:
        """The end of this thread ends the link, so that the reader gets an error."""
        try:
            while (payload := self._queue.get()) is not None:
                write_frame(self._sock, _MESSAGE, payload)
        except OSError:
            pass  # the peer is gone, and the reader gets the error
        finally:
            self.cut()


def _name_of(message: object) -> str:
    """With what it carries, as in EventReported(SubtaskAcked)."""
    inner = getattr(message, "event", None) or getattr(message, "message", None)
    name = type(message).__name__
    return f"{name}({type(inner).__name__})" if inner is not None else name
