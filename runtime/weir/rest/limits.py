"""Bounds what a client can cost the driver before it has shown the job's token (spec X1, X3).

The driver shares its memory with the job, so nothing that a client sends is kept without a bound.
The middleware looks at the head of a request before anything routes it or reads its body: a request
that changes something needs the token, and a body has a longest size, announced or not. A refusal
of a body that is still to come closes the connection, so that the rest is never received.

Connections are counted where they are accepted, before TLS begins. Beyond the bound the oldest one
that has not shown the token is closed: a client that asks at once is answered, even during a flood,
whereas closing the newest would let a few silent connections block all other clients.
"""

import socket
from contextlib import suppress
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weir.rest.authorization import Guard, refusal_without_token
from weir.rest.problems import Refusal, answer_to, refuse

LONGEST_BODY = 16 << 10
"""The largest command is a savepoint's directory of 2 KiB."""

LONGEST_HEAD = 16 << 10
"""Of a request: its line and its headers."""

MOST_UNTRUSTED = 256
"""Connections that have not shown the token."""

MOST_REQUESTS = 1024
"""Connections and requests in all, with those of the token's bearers."""

READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing. Their bodies are never read."""

Peer = tuple[str, int]


class UntrustedConnections:
    """The open connections that have not shown the token, the oldest first."""

    def __init__(self) -> None:
        self._open: dict[Peer, socket.socket] = {}

    def add(self, peer: Peer, sock: socket.socket) -> None:
        self._open.pop(peer, None)
        self._open[peer] = sock
        if len(self._open) > MOST_UNTRUSTED:
            self._open = {at: it for at, it in self._open.items() if it.fileno() >= 0}
        while len(self._open) > MOST_UNTRUSTED:
            oldest = self._open.pop(next(iter(self._open)))
            with suppress(OSError):  # the peer has closed it
                oldest.shutdown(socket.SHUT_RDWR)

    def trust(self, peer: Peer) -> None:
        self._open.pop(peer, None)


class CountedListener(socket.socket):
    """A listening socket that counts what it accepts among the strangers."""

    def __init__(self, listening: socket.socket, strangers: UntrustedConnections) -> None:
        super().__init__(
            listening.family, listening.type, listening.proto, fileno=listening.detach()
        )
        self._strangers = strangers

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        sock, peer = super().accept()
        self._strangers.add(peer[:2], sock)
        return sock, peer


class RequestLimits:
    """The outermost layer of the API."""

    def __init__(self, app: ASGIApp, guard: Guard, strangers: UntrustedConnections) -> None:
        self._app = app
        self._guard = guard
        self._strangers = strangers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        refusal = self._judged(scope, headers) or _too_long(scope["method"], headers)
        if refusal is not None:
            await _answer(refusal, headers, scope, receive, send)
        elif scope["method"] in READING or not _has_body(headers):
            await self._app(scope, receive, send)
        else:
            await self._with_body(scope, receive, send)

    def _judged(self, scope: Scope, headers: dict[bytes, bytes]) -> Refusal | None:
        """Why a request is refused; also marks a connection that has shown the token."""
        refusal = refusal_without_token(self._guard, headers.get(b"authorization", b""))
        if refusal is None and scope["client"] is not None:
            self._strangers.trust((scope["client"][0], scope["client"][1]))
        return None if scope["method"] in READING else refusal

    async def _with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > LONGEST_BODY:
                await _answer(_above_the_limit(), dict(scope["headers"]), scope, receive, send)
                return
        await self._app(scope, _replayed(body, receive), send)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The whole body first, then whatever else happens to the connection."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return messages.pop() if messages else await receive()

    return next_message


def _has_body(headers: dict[bytes, bytes]) -> bool:
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _is_bounded(headers: dict[bytes, bytes]) -> bool:
    """Whether what is left of the request is so little that reading it costs nothing."""
    announced = int(headers.get(b"content-length", b"0"))  # the parser has refused anything else
    return b"transfer-encoding" not in headers and announced <= LONGEST_BODY


def _too_long(method: str, headers: dict[bytes, bytes]) -> Refusal | None:
    """A body of unknown length is counted as it comes, where anything reads it at all."""
    is_counted = b"transfer-encoding" in headers and method not in READING
    return None if is_counted or _is_bounded(headers) else _above_the_limit()


def _above_the_limit() -> Refusal:
    return refuse(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "the body is too long",
        f"it may have more than {LONGEST_BODY} bytes, the most that this API reads",
        "send no body with a question, and the order alone with an order",
    )


async def _answer(
    refusal: Refusal, headers: dict[bytes, bytes], scope: Scope, receive: Receive, send: Send
) -> None:
    """Say no; with a body that has no bound on its way, hang up too."""
    response = answer_to(refusal)
    if not _is_bounded(headers):
        response.headers["Connection"] = "close"
    await response(scope, receive, send)
