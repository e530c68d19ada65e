"""The report of a driver about its job, for the process that manages the job, such as an operator.

The driver serves the report by its API and writes it when its process ends. A driver runs user
code, so the reader validates the shape and the size of every field: numbers and names have limits,
long sentences are truncated, and a list that is too long is refused. The reader ignores fields that
it does not know, because driver and reader may be of different releases. This module does not
decide what follows from a report.
"""

from enum import StrEnum
from hashlib import blake2b
from typing import Annotated

from pydantic import ConfigDict, Field, StrictBool, StrictInt

from weir.api.model import Model
from weir.api.truncation import TruncatedTo

LARGEST = 2**63 - 1
LONGEST_ID = 128
LONGEST_PATH = 2_048
LONGEST_SENTENCE = 2_048
LONGEST_VERSION = 64
MOST_REQUESTS = 64
_VERSION_BYTES = 8

Number = Annotated[StrictInt, Field(ge=0, le=LARGEST)]
Path = Annotated[str, Field(max_length=LONGEST_PATH)]
Sentence = Annotated[str, TruncatedTo(LONGEST_SENTENCE)]
Version = Annotated[str, Field(max_length=LONGEST_VERSION)]


class JobPhase(StrEnum):
    """What a job is doing."""

    CREATED = "CREATED"
    WAITING_FOR_SLOTS = "WAITING_FOR_SLOTS"
    DEPLOYING = "DEPLOYING"
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    FINISHED = "FINISHED"
    STOPPED = "STOPPED"
    CANCELED = "CANCELED"
    FAILED = "FAILED"

    @property
    def is_over(self) -> bool:
        return self in (self.FINISHED, self.STOPPED, self.CANCELED, self.FAILED)


class Outcome(StrEnum):
    """How a request to the driver stands."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class _ReportPart(Model):
    """A part of a report."""

    model_config = ConfigDict(extra="ignore")


class CheckpointReport(_ReportPart):
    """A completed checkpoint that the job can restore."""

    id: Number
    path: Path | None = None
    completed_at_ms: Number
    size_bytes: Number | None = None
    duration_ms: Number | None = None


class RequestReport(_ReportPart):
    """A request to the driver, by the key that it was made with."""

    id: Annotated[str, Field(max_length=LONGEST_ID)]
    outcome: Outcome
    path: Path | None = None
    """Of what a completed request has made."""
    checkpoint: Number | None = None
    """Its id."""
    size_bytes: Number | None = None
    message: Sentence = ""
    """Why a request has failed."""


class JobReport(_ReportPart):
    """How a job stands, as its driver sees it."""

    attempt: Number
    """Number of the driver's start, as the manager of the job counts; 0 without a manager."""
    phase: JobPhase
    newest: CheckpointReport | None = None
    """The newest that this driver has completed; none before its first."""
    completed: Number = 0
    """Checkpoints and savepoints that this driver has completed."""
    restarts: Number = 0
    """Times that this driver has restarted its job."""
    why: Sentence = ""
    """Why the job failed or restarted last; empty if it never did."""
    is_rejected: StrictBool = False
    """A person must change something; trying again is of no use."""
    scheduler_running: StrictBool | None = None
    """Whether checkpoints are taken periodically now; not known without a job."""
    slots_missing: Number = 0
    """How many more slots the job waits for."""
    requests: Annotated[tuple[RequestReport, ...], Field(max_length=MOST_REQUESTS)] = ()
    """Those made last, the newest at the end."""
    version: Version = ""
    """Changes whenever another field changes; empty where a client cannot wait for a change."""

    def stamped(self) -> "JobReport":
        """The same report with its version, by which a client waits for the next report."""
        content = self.model_dump_json(exclude={"version"}).encode()
        version = blake2b(content, digest_size=_VERSION_BYTES).hexdigest()
        return self.model_copy(update={"version": version})

    def as_over(self, why: str, *, is_rejected: bool = False) -> "JobReport":
        """The same, of a driver whose work ended for this reason."""
        phase = JobPhase.FAILED if is_rejected else self.phase
        fields = self.model_dump(by_alias=False) | {"phase": phase, "why": why}
        return JobReport.model_validate(fields | {"is_rejected": is_rejected})
