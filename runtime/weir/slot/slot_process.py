"""The slot as a process: registers with the driver and runs subtasks until the driver ends it.

The mailbox has the main thread. A second thread reads the driver's messages, a third sends a
heartbeat every second, whatever the mailbox is busy with, and a few upload snapshots. Others read
state to restore: uploads of an attempt that is over may still wait for storage. When the link to
the driver ends, so does the process, and the driver restarts its work elsewhere (spec R1).
"""

import logging
import os
import resource
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from weir.api.state_config import StateConfig
from weir.core.coordinator.events import SubtaskAcked, SubtaskDeclined
from weir.core.ids import SlotId
from weir.core.reasons import Reason
from weir.dataflow.physical import JobGraph
from weir.exchange import Exchange
from weir.slot.mailbox import Mailbox
from weir.slot.snapshot_storage import SnapshotStorage, SnapshotStorageSettings
from weir.slot.subtask_deployment import (
    AlignmentSettings,
    SlotExecutors,
    StageFactory,
    SubtaskDeployer,
)
from weir.state.backends import backends_of
from weir.wire.authenticated_sockets import Address, Purpose, Tls, dial
from weir.wire.control_messages import (
    EventReported,
    Heartbeat,
    Registered,
    ShutDownSlot,
    SubtaskFailure,
    TerminateSlot,
)
from weir.wire.message_link import MessageLink, MessageTooLong

log = logging.getLogger("weir.slot")

UPLOAD_THREADS = 2
READ_THREADS = 2
PULSE_SECONDS = 1.0
SWITCH_SECONDS = 0.0005
"""How long a thread may keep the others from running: an upload that encodes rows in Python would
otherwise hold the mailbox up for ten times as long, each time it has waited for a socket."""
RECYCLED = 17
"""The exit status of a process that the driver recycled."""


@dataclass(frozen=True, slots=True)
class SlotSetting:
    """The configuration of a slot; it travels inside the Spark task."""

    driver: Address
    secret: bytes
    tls: Tls | None
    graph: JobGraph
    alignment: AlignmentSettings
    storage: SnapshotStorageSettings
    state: StateConfig


def host_subtasks(setting: SlotSetting, executor: str, task_attempt: int) -> None:
    """Be a slot until the driver ends it."""
    sys.setswitchinterval(SWITCH_SECONDS)
    name = SlotId(f"{executor}.{task_attempt}.{os.getpid()}")
    hello = {"slot": name}
    sock = dial(setting.driver, setting.secret, Purpose.SLOT_CONTROL, setting.tls, hello)
    exchange = Exchange(name, sock.getsockname()[0], setting.secret, setting.tls)
    link = MessageLink(sock, name)
    files = SnapshotStorage(setting.storage)
    here = (*exchange.address, os.getpid(), files.disk(), files.held())
    link.send(Registered(name, executor, task_attempt, *here))
    uploading = ThreadPoolExecutor(UPLOAD_THREADS, thread_name_prefix="weir-upload")
    materializing = ThreadPoolExecutor(1, thread_name_prefix="weir-materialize")
    reading = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="weir-restore")
    factory = StageFactory(setting.graph, setting.alignment, backends_of(setting.state))
    executors = SlotExecutors(uploading, reading, materializing)
    deployer = SubtaskDeployer(factory, files, executors)
    mailbox = Mailbox(deployer, exchange, partial(report, link))
    threading.Thread(target=_listen, args=(link, mailbox), daemon=True, name="weir-control").start()
    threading.Thread(
        target=_pulse, args=(link, mailbox), daemon=True, name="weir-heartbeat"
    ).start()
    mailbox.run()
    exchange.close()
    reading.shutdown(wait=True)
    materializing.shutdown(wait=True, cancel_futures=True)
    uploading.shutdown(wait=True)
    link.close()


def report(link: MessageLink, event: object) -> None:
    """Send an event to the driver; an ack too long for a message becomes a decline."""
    try:
        link.send(event if isinstance(event, SubtaskFailure) else EventReported(event))
    except MessageTooLong as problem:
        if not isinstance(event, SubtaskAcked):
            raise
        reason = Reason.CHECKPOINT_DECLINED
        declined = SubtaskDeclined(
            event.attempt, event.checkpoint, event.subtask, reason, str(problem)
        )
        link.send(EventReported(declined))


def _listen(link: MessageLink, mailbox: Mailbox) -> None:
    try:
        while True:
            message = link.receive()
            if isinstance(message, TerminateSlot):
                os._exit(RECYCLED)
            mailbox.post(message)
            if isinstance(message, ShutDownSlot):
                return
    except ConnectionError as problem:
        log.info("The link to the driver ended, and this slot ends with it: %s", problem)
        os._exit(1)


def _pulse(link: MessageLink, mailbox: Mailbox) -> None:
    while True:
        began = mailbox.turn_began
        turn_ms = int((time.monotonic() - began) * 1000) if began else 0
        link.send(Heartbeat(turn_ms, _resident_bytes(), mailbox.gauges()))
        time.sleep(PULSE_SECONDS)


def _resident_bytes() -> int:
    """What the process holds now, not the most it ever held."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()
