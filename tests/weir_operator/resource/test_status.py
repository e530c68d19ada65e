"""A status survives being written and read, by releases that do not know all of it."""

import base64
import gzip
import json
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from weir_operator.resource import (
    CheckpointedJobSnapshotStatus,
    CheckpointedJobStatus,
    Rejected,
    parse_status,
)
from weir_operator.resource.compression import packed
from weir_operator.resource.conditions import Condition, ConditionStatus, ConditionType
from weir_operator.resource.status import LONGEST_HISTORY, LifecycleState
from weir_operator.resource.status_fields import (
    Action,
    DriverStatus,
    HistoryEntry,
    Intent,
    LastCheckpoint,
    RestorePoint,
    RestoreType,
    SpecVersion,
    StepName,
    StepState,
    Upgrade,
    UpgradeCause,
    UpgradeStep,
)
from weir_operator.resource.upgrade_policy import UpgradeMode

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

STATUS = CheckpointedJobStatus(
    observed_generation=3,
    state=LifecycleState.UPGRADING,
    conditions=(
        Condition(
            type=ConditionType.READY,
            status=ConditionStatus.FALSE,
            last_transition_time=NOW,
            reason="Upgrading",
        ),
    ),
    driver=DriverStatus(attempt=2, pod_name="orders-driver-2"),
    intent=Intent(action=Action.DELETE_DRIVER, target="orders-driver-2", written_at=NOW),
    restore_point=RestorePoint(type=RestoreType.LAST_STATE, lowest_checkpoint=17, recorded_at=NOW),
    last_checkpoint=LastCheckpoint(id=17, completed_at=NOW, duration=1_200),
    upgrade=Upgrade(
        cause=UpgradeCause.SPEC_CHANGED,
        to_generation=3,
        mode=UpgradeMode.LAST_STATE,
        started_at=NOW,
        steps=(
            UpgradeStep(name=StepName.TAKE_SAVEPOINT, state=StepState.SKIPPED),
            UpgradeStep(name=StepName.STOP_DRIVER, state=StepState.ACTIVE, deadline=NOW),
        ),
        next="the old driver stops; then the new one starts from checkpoint 17 or newer",
    ),
)


def test_a_status_is_read_as_it_was_written():
    """K3: what was intended is known after a crash."""
    written = STATUS.model_dump(mode="json", exclude_none=True)

    assert CheckpointedJobStatus.model_validate(written) == STATUS
    assert written["lastCheckpoint"]["completedAt"] == "2026-01-02T03:04:05Z"
    assert written["lastCheckpoint"]["duration"] == "1200 ms"


def test_a_job_that_was_never_reconciled_has_an_empty_status():
    """K7."""
    assert CheckpointedJobStatus.model_validate({}).state is LifecycleState.CREATED


def test_what_a_newer_release_wrote_is_ignored():
    """K7: an operator can be taken back to an older release."""
    written = STATUS.model_dump(mode="json", exclude_none=True) | {"moodOfTheJob": "sunny"}

    assert CheckpointedJobStatus.model_validate(written) == STATUS


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("conditions", [{"type": "Happy"}]),
        ("state", "Happy"),
        ("intent", {"action": "Dance"}),
        ("history", [{"mood": "sunny"}]),
    ],
)
def test_words_for_people_of_a_newer_release_keep_no_job_from_being_looked_after(field, given):
    """K3, K7: they are written anew, and all that matters is still known."""
    written = STATUS.model_dump(mode="json", exclude_none=True)
    without = {name: value for name, value in written.items() if name != field}

    read_back = parse_status(written | {field: given})

    assert read_back == CheckpointedJobStatus.model_validate(without)


def test_a_restore_point_that_cannot_be_read_is_not_forgotten():
    """K4: the job is left alone rather than started from less."""
    written = STATUS.model_dump(mode="json", exclude_none=True)

    judged = parse_status(written | {"restorePoint": {"type": "Elsewhere"}})

    assert isinstance(judged, Rejected)
    assert judged.problems[0].field.startswith("status.restorePoint")


def test_a_long_message_is_cut():
    """X3: what a driver tells never keeps its job from being looked after."""
    status = CheckpointedJobSnapshotStatus(message="x" * 5_000)

    assert status.message is not None
    assert len(status.message) == 1_024
    assert status.message.endswith("…")


def test_the_history_is_bounded():
    """K7: a job may run for years."""
    entry = HistoryEntry(at=NOW, reason="Restarted", message="slot 3 was lost")

    with pytest.raises(ValidationError, match="at most 20"):
        CheckpointedJobStatus(history=(entry,) * (LONGEST_HISTORY + 1))


def test_no_condition_is_there_twice():
    """K7."""
    with pytest.raises(ValidationError, match="is there twice"):
        CheckpointedJobStatus(conditions=STATUS.conditions * 2)


@pytest.mark.parametrize(
    "given",
    [
        {"type": "Path", "recordedAt": NOW},
        {"type": "Nothing", "path": "s3://bucket/savepoint-1", "recordedAt": NOW},
    ],
)
def test_a_restore_point_has_a_path_exactly_if_it_is_one(given):
    """K4."""
    with pytest.raises(ValidationError, match="give a path with type Path only"):
        RestorePoint.model_validate(given)


def test_a_time_without_a_zone_is_refused():
    """K7: ages are counted from it."""
    with pytest.raises(ValidationError):
        LastCheckpoint.model_validate({"id": 1, "completedAt": "2026-01-02T03:04:05"})


BEFORE_COMPRESSION = {
    "state": "Stable",
    "deployed": {"generation": 3, "hash": "a1", "spec": {"image": "orders:1", "parallelism": 2}},
    "stable": {"generation": 2, "hash": "a0", "spec": {"image": "orders:0", "parallelism": 2}},
}


def test_versions_of_a_release_that_did_not_compress_them_are_read():
    """K3 K6: what runs, and what a rollback goes back to."""
    status = parse_status(BEFORE_COMPRESSION)

    assert status.deployed.spec == {"image": "orders:1", "parallelism": 2}
    assert status.stable.spec == {"image": "orders:0", "parallelism": 2}


def test_a_version_is_written_compressed_and_read_again():
    """K7: a status holds two of them beside the specification, and must fit into etcd."""
    spec = {"driver": {"env": [{"name": f"V{n}", "value": "x" * 1_000} for n in range(100)]}}
    status = CheckpointedJobStatus(deployed=SpecVersion(generation=1, hash="a", spec=spec))

    written = status.model_dump(mode="json", exclude_none=True)

    assert "spec" not in written["deployed"]
    assert len(json.dumps(written)) < len(json.dumps(spec)) / 20
    assert parse_status(written).deployed.spec == spec


@pytest.mark.parametrize("text", ["", "no base64", packed({})[:-8], packed({"a": "x" * 5_000_000})])
def test_a_version_that_cannot_be_unpacked_leaves_the_job_alone(text):
    """K3: and one that would fill the memory is not unpacked."""
    damaged = {"deployed": {"generation": 1, "hash": "a", "compressedSpec": text}}

    refused = parse_status(damaged)

    assert isinstance(refused, Rejected)
    assert "status.deployed.compressedSpec" in str(refused)


def test_people_can_unpack_a_version():
    """K7: with base64 -d | gunzip, as its description says."""
    text = packed({"image": "orders:1"})

    assert json.loads(gzip.decompress(base64.b64decode(text))) == {"image": "orders:1"}
