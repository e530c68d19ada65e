"""Orders to die or to freeze, passed between a test and the processes of its job as small files.

One fault is armed at a time. The first process at its step claims it, by creating a file
exclusively, and so every fault happens once, however many processes see it.
"""

import json
import os
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

DIRECTORY = "WEIR_TEST_FAULTS"
"""The environment variable that names the directory of the orders."""


class Step(StrEnum):
    """The steps of a checkpoint's life, in their order."""

    TRIGGER = "trigger"
    BARRIER = "barrier received"
    ALIGNMENT = "first of several barriers"
    CAPTURE = "synchronous part"
    UPLOAD = "upload"
    IN_FLIGHT = "upload of overtaken rows"
    ACK = "ack"
    MANIFEST = "manifest"
    ENTRY = "log entry"
    NOTIFICATION = "notification"
    HEARD = "completion received"
    COMMIT = "sink commit"
    RECORD = "commit record"
    SUBSUMPTION = "subsumption"
    DELETION = "deletion"


class Moment(StrEnum):
    """On which side of the step."""

    BEFORE = "before"
    AFTER = "after"


class FaultKind(StrEnum):
    """What happens there."""

    KILL_SLOT = "kill a slot"
    KILL_DRIVER = "kill the driver"
    FREEZE_DRIVER = "freeze the driver"


@dataclass(frozen=True, slots=True)
class Fault:
    """One order."""

    number: int
    step: Step
    moment: Moment
    kind: FaultKind
    skip: int = 0
    """So many times the step is passed unharmed, in each process."""

    def __str__(self) -> str:
        return f"{self.kind} {self.moment} {self.step}"


@dataclass(frozen=True, slots=True)
class Orders:
    """The directory in which faults are armed and claimed."""

    directory: Path

    def arm(self, fault: Fault) -> None:
        fresh = self.directory / "armed.new"
        fresh.write_text(json.dumps(asdict(fault)))
        fresh.replace(self.directory / "armed")

    def armed(self) -> Fault | None:
        """The order that stands and was not carried out yet."""
        try:
            given = json.loads((self.directory / "armed").read_text())
        except FileNotFoundError:
            return None
        fault = Fault(
            given["number"],
            Step(given["step"]),
            Moment(given["moment"]),
            FaultKind(given["kind"]),
            given["skip"],
        )
        return None if self.has_happened(fault) else fault

    def has_happened(self, fault: Fault) -> bool:
        return self._claimed(fault).exists()

    def claim(self, fault: Fault) -> bool:
        """Whether it is ours to carry out."""
        try:
            os.close(os.open(self._claimed(fault), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def give_back(self, fault: Fault) -> None:
        self._claimed(fault).unlink()

    def _claimed(self, fault: Fault) -> Path:
        return self.directory / f"claimed-{fault.number}"

    # -- the current driver

    def name_driver(self, pid: int) -> None:
        fresh = self.directory / "driver.new"
        fresh.write_text(str(pid))
        fresh.replace(self.directory / "driver")

    def driver(self) -> int:
        """Its process, which is also the session of its slots."""
        return int((self.directory / "driver").read_text())
