"""A proxy between a job and its S3 that injects faults: well, slow, refusing or gone.

A pod runs it as one file, so it needs the standard library alone. What passes, passes unchanged: a
request is signed with the host that it was sent to, and the S3 must see the same. Only the ends of
requests are looked for, each of which states its length; what is answered is not looked at, for a
client asks again only when it has its answer. A command in the pod switches the mode; once
that is answered, no request is treated by the old one.

    python3 faulty_proxy.py serve HOST PORT
    python3 faulty_proxy.py tell [MOOD]
"""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum

ANYWHERE, PORT = "0.0.0.0", 8333  # noqa: S104 - the S3 keys protect it
DELAY_S = 1.0
CONTROL = "/tmp/mood"  # noqa: S108 - a volume of the pod's own

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
_PIECE = 1 << 16
_SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


class FaultMode(StrEnum):
    """What becomes of a request."""

    WELL = "well"
    """It is passed on."""
    SLOW = "slow"
    """It is passed on after a while."""
    REFUSING = "refusing"
    """It is answered at once, in S3's words for a server that has too much to do."""
    GONE = "gone"
    """It is never answered. Connections break when the storage goes, and when it is back."""


class TroubledProxy:
    """One mode for all connections."""

    def __init__(self, host: str, port: int) -> None:
        self._s3 = (host, port)
        self._mood = FaultMode.WELL
        self._open: set[asyncio.StreamWriter] = set()
        self._turned_away = 0

    async def attend(self, requests: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """One connection of a client, until either side hangs up."""
        with suppress(asyncio.IncompleteReadError, OSError), self._held(client):
            answers, s3 = await asyncio.open_connection(*self._s3)
            with self._held(s3):
                passing = asyncio.create_task(_pass_on(answers, client))
                try:
                    while True:
                        await self._treat(requests, client, s3)
                finally:
                    passing.cancel()

    async def obey(self, orders: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        """Switch the mode if one is given; return how many requests were rejected so far."""
        word = (await orders.readline()).decode().strip()
        if word:
            self._switch(FaultMode(word))
        answer.write(f"{self._turned_away}\n".encode())
        await answer.drain()
        answer.close()

    def _switch(self, mode: FaultMode) -> None:
        breaks = FaultMode.GONE in (self._mood, mode)
        self._mood = mode
        for end in self._open if breaks else ():
            end.transport.abort()

    @contextmanager
    def _held(self, end: asyncio.StreamWriter) -> Iterator[None]:
        self._open.add(end)
        try:
            yield
        finally:
            self._open.discard(end)
            end.transport.abort()

    async def _treat(
        self,
        requests: asyncio.StreamReader,
        client: asyncio.StreamWriter,
        s3: asyncio.StreamWriter,
    ) -> None:
        """The next request, by the mode at the time of forwarding."""
        head = await requests.readuntil(_END_OF_HEAD)
        if self._mood is FaultMode.SLOW:
            await asyncio.sleep(DELAY_S)
        match self._mood:
            case FaultMode.GONE:
                self._turned_away += 1
                await requests.read()
            case FaultMode.REFUSING:
                self._turned_away += 1
                async for _ in _body(requests, head):
                    pass
                client.write(_refusal(head))
                await client.drain()
            case FaultMode.WELL | FaultMode.SLOW:
                s3.write(head)
                async for piece in _body(requests, head):
                    s3.write(piece)
                    await s3.drain()


async def _body(requests: asyncio.StreamReader, head: bytes) -> AsyncIterator[bytes]:
    stated = _LENGTH.search(head)
    left = int(stated[1]) if stated else 0
    while left:
        piece = await requests.read(min(left, _PIECE))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
        yield piece


def _refusal(head: bytes) -> bytes:
    """A question for the head alone is answered without a body."""
    words = b"" if head.startswith(b"HEAD ") else _SLOW_DOWN
    lines = ("HTTP/1.1 503 Slow Down", "Content-Type: application/xml")
    length = f"Content-Length: {len(words)}"
    return "\r\n".join((*lines, length, "", "")).encode() + words


async def _pass_on(answers: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await answers.read(_PIECE):
            client.write(piece)
            await client.drain()
        client.close()


async def serve(host: str, port: int) -> None:
    """The listener starts last: once it accepts connections, the mode can be switched."""
    proxy = TroubledProxy(host, port)
    async with (
        await asyncio.start_unix_server(proxy.obey, CONTROL),
        await asyncio.start_server(proxy.attend, ANYWHERE, PORT) as door,
    ):
        await door.serve_forever()


async def tell(word: str) -> int:
    """Switch the mode of the running proxy; return how many requests it has rejected."""
    said, order = await asyncio.open_unix_connection(CONTROL)
    order.write(f"{word}\n".encode())
    count = int(await said.readline())
    order.close()
    return count


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", host, port]:
            asyncio.run(serve(host, int(port)))
        case ["tell", *mode]:
            print(asyncio.run(tell("".join(mode))))  # noqa: T201 - it is what was asked for
        case _:
            sys.exit(__doc__)
