"""Reads the environment variables that the operator sets for a driver.

A user who runs a script sets none of them, and the script decides everything. The operator sets the
job, the attempt of its driver, and what to start from; the user's script does not need to know.
Invalid values are refused, never guessed: a driver that starts from the wrong place would repeat or
lose output.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from weir.api.environment_variables import (
    WEIR_ATTEMPT,
    WEIR_DEPLOYMENT,
    WEIR_FRESH,
    WEIR_FROM,
    WEIR_JOB,
    WEIR_LOWEST_CHECKPOINT,
    WEIR_RERUN,
    WEIR_TAKE_OVER,
    WEIR_TERMINATION_LOG,
)
from weir.core.ids import NO_CHECKPOINT, CheckpointId
from weir.errors import JobRejected

NUMBER = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class DriverEnvironment:
    """Which job a driver serves, and what it may start from."""

    deployment: str
    """The submission; a restarted driver has the same one. Empty: every start is a new one."""
    job: str = ""
    """The job's directory below the checkpoint storage; empty: the script names it."""
    attempt: int | None = None
    """Of the driver, as the operator counts; none if no operator owns the job."""
    lowest_checkpoint: CheckpointId = NO_CHECKPOINT
    """Nothing older than this is acceptable."""
    is_fresh: bool = False
    """Start without state, even if the job's log has checkpoints."""
    takes_over: bool = False
    """Replace a driver of another submission even while that driver lives. Always true if the
    submission is named, because its owner replaces drivers on purpose."""
    reruns: bool = False
    """Run a job that has finished once more."""

    @property
    def is_managed(self) -> bool:
        """An operator owns the job and decides what becomes of its checkpoints."""
        return self.attempt is not None


def driver_environment_of(variables: Mapping[str, str]) -> DriverEnvironment:
    lowest, attempt = _number(variables, WEIR_LOWEST_CHECKPOINT), _number(variables, WEIR_ATTEMPT)
    is_fresh = _truth(variables, WEIR_FRESH)
    if is_fresh and (lowest or variables.get(WEIR_FROM)):
        other = WEIR_LOWEST_CHECKPOINT if lowest else WEIR_FROM
        raise JobRejected(
            f"{WEIR_FRESH} and {other} contradict each other",
            f"{WEIR_FRESH} asks for a start without state and {other} for a start with it",
            "set only one of them",
        )
    deployment = variables.get(WEIR_DEPLOYMENT, "")
    return DriverEnvironment(
        deployment=deployment,
        job=_job(variables),
        attempt=attempt,
        lowest_checkpoint=CheckpointId(lowest or NO_CHECKPOINT),
        is_fresh=is_fresh,
        takes_over=bool(deployment) or _truth(variables, WEIR_TAKE_OVER),
        reruns=bool(deployment) or _truth(variables, WEIR_RERUN),
    )


def termination_log(variables: Mapping[str, str]) -> Path | None:
    """Where the driver's last report goes; nowhere if it is not set."""
    place = variables.get(WEIR_TERMINATION_LOG)
    return Path(place) if place else None


def _job(variables: Mapping[str, str]) -> str:
    """One directory, directly below the storage."""
    name = variables.get(WEIR_JOB, "")
    if "/" in name or name in (".", ".."):
        raise JobRejected(
            f"{WEIR_JOB} = {name} is not allowed",
            "it is not the name of a directory",
            "use the name of the job's directory below its checkpoint storage",
        )
    return name


def _number(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(name, "")
    if not text:
        return None
    if not NUMBER.fullmatch(text):
        raise JobRejected(
            f"{name} = {text[:40]} is not allowed",
            "it is no number",
            "use 0, 1, 2 and so on",
        )
    return int(text)


def _truth(variables: Mapping[str, str], name: str) -> bool:
    text = variables.get(name, "")
    if text in ("", "false", "true"):
        return text == "true"
    raise JobRejected(
        f"{name} = {text[:40]} is not allowed",
        "it is neither true nor false",
        "use true or false",
    )
