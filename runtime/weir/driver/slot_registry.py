"""Tracks the registered slots, sends them messages, and detects lost ones.

A slot registers on the control link and is lost when the link ends, when its heartbeats stop, or
when its mailbox hangs in one turn for too long. Losing one is an event; the core decides what
follows from it (spec R3).
"""

import logging
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from weir.core.attempt import SlotLost, SlotRegistered, SubtaskFailed
from weir.core.ids import AttemptId, SlotId, SubtaskId
from weir.core.job_master import Event
from weir.wire.authenticated_sockets import Address, Hello, Listener
from weir.wire.control_messages import (
    EventReported,
    Heartbeat,
    Registered,
    ShutDownSlot,
    SubtaskFailure,
    SubtaskMessage,
    TerminateSlot,
)
from weir.wire.message_link import MessageLink

log = logging.getLogger("weir.driver")

SHUTDOWN_SECONDS = 5.0
"""So long slots may take to end what they have begun to write."""

MOST_REASONS = 64
"""So many failures are remembered with their reasons; each is a few kilobytes at most."""


class SlotPool(Protocol):
    """Starts slot processes, and can kill one that does not respond."""

    def kill(self, task_attempt: int, why: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a slot may be silent, and how long a turn of it may last."""

    silence_seconds: float = 10.0
    turn_seconds: float = 300.0


@dataclass(slots=True)
class KnownSlot:
    """One registered process."""

    registered: Registered
    link: MessageLink
    last_seen: float = field(default_factory=time.monotonic)
    heartbeat: Heartbeat | None = None


class SlotRegistry:
    """All slots of a job."""

    def __init__(
        self,
        listener: Listener,
        pool: SlotPool,
        patience: Patience,
        enqueue: Callable[[Event], None],
    ) -> None:
        self._listener = listener
        self._pool = pool
        self._patience = patience
        self._enqueue = enqueue
        self._known: dict[SlotId, KnownSlot] = {}
        self._lock = threading.Lock()
        self._fewer = threading.Condition(self._lock)
        self._is_over = threading.Event()
        self._reasons: dict[tuple[AttemptId, SubtaskId], str] = {}
        """Why the subtasks that failed last did so, for people."""
        self._draw = random.Random()  # noqa: S311 - spreads restarts, guards nothing

    @property
    def address(self) -> Address:
        return self._listener.address

    def open(self) -> None:
        self._listener.serve(self._welcome)
        threading.Thread(target=self._watch, daemon=True, name="weir-watch").start()

    # -- to slots

    def send(self, slot: SlotId, message: object) -> None:
        """A message to a lost slot is dropped: its loss is, or will be, an event."""
        known = self._known.get(slot)
        if known is not None:
            known.link.send(message)

    def send_to_subtask(
        self, slot: SlotId, subtask: SubtaskId, attempt: AttemptId, message: object
    ) -> None:
        self.send(slot, SubtaskMessage(subtask, attempt, message))

    def recycle(self, slot: SlotId) -> None:
        """End the process; Spark starts another in its place."""
        self.send(slot, TerminateSlot())

    def addresses(self) -> dict[SlotId, Address]:
        with self._lock:
            return {s: (k.registered.host, k.registered.port) for s, k in self._known.items()}

    def heartbeats(self) -> dict[SlotId, tuple[Registered, Heartbeat]]:
        """The last heartbeat of each slot."""
        with self._lock:
            known = dict(self._known)
        return {s: (k.registered, k.heartbeat) for s, k in known.items() if k.heartbeat is not None}

    def dismiss(self) -> None:
        """Shut all slots down, and accept no new ones."""
        self._is_over.set()
        self._listener.close()
        with self._lock:
            known = list(self._known.values())
        for slot in known:
            slot.link.send(ShutDownSlot())

    def until_gone(self) -> None:
        """A slot goes when all that it has begun to write is written; one that hangs may stay."""
        with self._fewer:
            if not self._fewer.wait_for(lambda: not self._known, SHUTDOWN_SECONDS):
                log.warning("Not every slot has left in time: %s", ", ".join(self._known))

    def close(self) -> None:
        self.dismiss()
        with self._lock:
            known = list(self._known.values())
        for slot in known:
            slot.link.close()

    # -- from slots

    def _welcome(self, sock: socket.socket, hello: Hello) -> None:
        link = MessageLink(sock, str(hello.get("slot", "")))
        threading.Thread(target=self._listen, args=(link,), daemon=True, name="weir-slot").start()

    def _listen(self, link: MessageLink) -> None:
        try:
            first = link.receive()
        except ConnectionError as problem:
            first = problem
        if not isinstance(first, Registered):
            said = str(first) if isinstance(first, Exception) else type(first).__name__
            log.warning("A slot could not register, it began with: %s", said)
            link.cut()
            return
        slot = first.slot
        with self._lock:
            self._known[slot] = KnownSlot(first, link)
        self._enqueue(SlotRegistered(slot, first.executor, first.disk, first.copies))
        try:
            while True:
                self._receive(slot, link.receive())
        except ConnectionError as problem:
            self._lose(slot, str(problem))

    def _receive(self, slot: SlotId, message: object) -> None:
        known = self._known.get(slot)
        if known is not None:
            known.last_seen = time.monotonic()
        match message:
            case EventReported(event):
                self._enqueue(event)  # type: ignore[arg-type]  # the core checks it
            case SubtaskFailure() if self._is_over.is_set():
                pass  # the first slot that exits breaks the others' connections
            case SubtaskFailure(attempt, subtask, cause, reason, error):
                log.warning("Task %s failed: %s", subtask, reason)
                self._remember_reason(attempt, subtask, reason)
                self._enqueue(SubtaskFailed(attempt, subtask, cause, self._draw.random(), error))
            case Heartbeat() if known is not None:
                known.heartbeat = message
            case _:
                raise ConnectionError(f"slot {slot} sent {type(message).__name__}")

    def _remember_reason(self, attempt: AttemptId, subtask: SubtaskId, reason: str) -> None:
        """Before the core knows of the failure; the oldest of too many is forgotten."""
        with self._lock:
            self._reasons[attempt, subtask] = reason
            if len(self._reasons) > MOST_REASONS:
                del self._reasons[next(iter(self._reasons))]

    def reason_of(self, failed: SubtaskFailed) -> str:
        """Why that subtask failed; empty if it is not remembered."""
        with self._lock:
            reason = self._reasons.get((failed.attempt, failed.subtask), "")
        return f"{failed.subtask}: {reason}" if reason else ""

    def _lose(self, slot: SlotId, why: str) -> None:
        with self._fewer:
            known = self._known.pop(slot, None)
            self._fewer.notify_all()
        if known is not None and not self._is_over.is_set():
            known.link.cut()
            log.warning("Slot %s is lost: %s", slot, why)
            self._enqueue(SlotLost(slot, self._draw.random()))

    def _watch(self) -> None:
        """A process that hangs is ended by Spark, which then starts another."""
        while not self._is_over.wait(1.0):
            now = time.monotonic()
            for slot, known in list(self._known.items()):
                silent = now - known.last_seen > self._patience.silence_seconds
                turn = known.heartbeat.turn_ms / 1000 if known.heartbeat else 0.0
                if silent or turn > self._patience.turn_seconds:
                    why = "it is silent" if silent else f"one turn has lasted {turn:.0f} s"
                    self._pool.kill(known.registered.task_attempt, why)
                    self._lose(slot, why)
