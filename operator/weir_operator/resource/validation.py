"""Validates specifications and reports everything that must change.

The API server rejects most invalid ones before; they are validated again here, because a resource
may be older than a rule, and because some rules compare values that CEL cannot parse. A rejection
is a result, not an exception: the running job continues with its current specification.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError

from weir.api.config_problem import InvalidValue, Problem, shown
from weir.api.model import Model
from weir.api.validation_errors import explain
from weir_operator.resource.api_group import JOB_NAME, LONGEST_JOB_NAME
from weir_operator.resource.job_spec import CheckpointedJobSpec
from weir_operator.resource.snapshot import CheckpointedJobSnapshotSpec
from weir_operator.resource.spec_changes import rejected_changes, rejected_snapshot_changes
from weir_operator.resource.status import CheckpointedJobStatus
from weir_operator.resource.string_types import StringPattern

NAME = StringPattern(
    pattern=JOB_NAME,
    longest=LONGEST_JOB_NAME,
    because="Services and pods are called after the job",
    remedy=f"use at most {LONGEST_JOB_NAME} lower-case letters, digits and '-', a letter first",
)

LARGEST_SPEC_BYTES = 128 * 1_024
"""A typical specification has a few thousand bytes. The operator holds several copies of one at a
time, and the status holds two beside the user's."""

_CAN_BE_LEFT_OUT = frozenset(
    {"state", "conditions", "intent", "history", "localRecovery", "schedulerRunning", "selector"}
)


@dataclass(frozen=True, slots=True)
class Rejected:
    """It is invalid; each problem names the field, the cause and the remedy."""

    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def validate_job(
    name: str, given: Mapping[str, object], before: CheckpointedJobSpec | None = None
) -> CheckpointedJobSpec | Rejected:
    """Read a job's specification; ``before`` is the one that runs, if there is one."""
    too_large = validate_size(size_of(given))
    if too_large is not None:
        return too_large
    try:
        NAME.check(name)
    except InvalidValue as unfit:
        return Rejected((Problem("metadata.name", shown(name), unfit.reason, unfit.remedy),))
    try:
        spec = CheckpointedJobSpec.model_validate(given)
    except ValidationError as error:
        return _explained(error, CheckpointedJobSpec)
    changes = () if before is None else tuple(rejected_changes(before, spec))
    return Rejected(_in_spec(changes)) if changes else spec


def size_of(given: Mapping[str, object]) -> int:
    """Bytes of a specification as JSON without spaces, which is how the API server stores it."""
    return len(json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode())


def validate_size(size: int) -> Rejected | None:
    """Reject a specification by its size alone, before anything of it is parsed."""
    if size <= LARGEST_SPEC_BYTES:
        return None
    problem = Problem(
        "spec",
        f"{size} bytes",
        f"it is larger than {LARGEST_SPEC_BYTES} bytes (128 KiB), the most that the operator reads",
        "move what is large (files, scripts, long lists of variables) into the image, a ConfigMap"
        " or a Secret, and refer to it from driver, executor or job",
    )
    return Rejected((problem,))


def validate_snapshot(
    given: Mapping[str, object], before: CheckpointedJobSnapshotSpec | None = None
) -> CheckpointedJobSnapshotSpec | Rejected:
    """Read a snapshot's specification; ``before`` is the one that was executed."""
    try:
        spec = CheckpointedJobSnapshotSpec.model_validate(given)
    except ValidationError as error:
        return _explained(error, CheckpointedJobSnapshotSpec)
    changes = () if before is None else tuple(rejected_snapshot_changes(before, spec))
    return Rejected(_in_spec(changes)) if changes else spec


def parse_status(given: Mapping[str, object]) -> CheckpointedJobStatus | Rejected:
    """Read a job's status, which a newer release may have written.

    Fields that every reconcile writes again, or that are only informational, are dropped if they
    cannot be read. All others determine what runs and what to start from: without them the job must
    be left alone.
    """
    try:
        return CheckpointedJobStatus.model_validate(given)
    except ValidationError as error:
        unread = {str(detail["loc"][0]) for detail in error.errors(include_url=False)}
        if unread <= _CAN_BE_LEFT_OUT:
            rest = {name: value for name, value in given.items() if name not in unread}
            return CheckpointedJobStatus.model_validate(rest)
        problems = explain(error, CheckpointedJobStatus)
        return Rejected(tuple(problem.under("status") for problem in problems))


def _explained(error: ValidationError, model: type[Model]) -> Rejected:
    """In our own format; a missing field has no value to show."""
    missing = {
        ".".join(str(part) for part in detail["loc"])
        for detail in error.errors(include_url=False)
        if detail["type"] == "missing"
    }
    return Rejected(
        _in_spec(
            tuple(
                replace(problem, value="nothing", reason="it is required", remedy="give it")
                if problem.field in missing
                else problem
                for problem in explain(error, model)
            )
        )
    )


def _in_spec(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    return tuple(problem.under("spec") for problem in problems)
