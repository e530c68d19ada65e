"""Every specification that cannot be run is refused in words that help.

The table is ``refusals.txt``; what the API server refuses of it is tested beside the definitions.
"""

from pathlib import Path

import pytest

from invalid_specs import SOUND, cases, overlaid
from weir_operator.resource import CheckpointedJobSpec, Rejected, validate_job, validate_snapshot

CASES = list(cases(Path(__file__).with_name("refusals.txt")))


def a_spec(**above):
    spec = validate_job("orders", overlaid(SOUND, above))
    assert isinstance(spec, CheckpointedJobSpec), spec
    return spec


@pytest.mark.parametrize("case", CASES, ids=[case.promise for case in CASES])
def test_a_refusal_names_field_value_reason_and_remedy(case):
    """A4 A5 C2 C6 C12 C13 C15 C16 K1 K2 K4 K5 K6 K8 K10 R2 R3 R8 S7 S11 U3 X1 X4: one row each."""
    before = None if case.before is None else validate_job("orders", case.before)

    assert not isinstance(before, Rejected), before
    assert str(validate_job("orders", case.spec, before)) == case.line


def test_every_problem_has_a_line_of_its_own():
    """U3: one look shows all that must change."""
    refused = validate_job("orders", overlaid(SOUND, {"parallelism": 0, "image": None}))

    assert isinstance(refused, Rejected)
    assert [problem.field for problem in refused.problems] == ["spec.parallelism", "spec.image"]


@pytest.mark.parametrize("name", ["Orders", "1st", "orders.eu", "orders-", "o" * 41, ""])
def test_a_name_fits_into_those_of_services_and_pods(name):
    """K1, K2."""
    refused = validate_job(name, SOUND)

    assert isinstance(refused, Rejected)
    assert refused.problems[0].field == "metadata.name"


def test_an_edit_that_drops_the_state_on_purpose_may_change_everything():
    """K4, S11: the user said so."""
    before = a_spec(maxParallelism=128)
    after = overlaid(
        SOUND,
        {
            "maxParallelism": 256,
            "checkpointing": {"storage": "s3://other/checkpoints"},
            "upgrade": {"mode": "stateless"},
        },
    )

    assert isinstance(validate_job("orders", after, before), CheckpointedJobSpec)


def test_a_savepoint_carries_the_state_to_another_storage():
    """K4, S10: a savepoint stands alone."""
    after = overlaid(
        SOUND,
        {
            "checkpointing": {
                "storage": "s3://other/checkpoints",
                "savepointDir": "s3://bucket/savepoints",
            },
            "upgrade": {"mode": "savepoint"},
        },
    )

    assert isinstance(validate_job("orders", after, a_spec()), CheckpointedJobSpec)


SNAPSHOT = {"jobName": "orders"}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        pytest.param(
            {"jobName": None},
            "spec.jobName = nothing: it is required. Remedy: give it.",
            id="K5 a snapshot is of a job",
        ),
        pytest.param(
            {"directory": "s3://b/s", "adoptPath": "s3://b/s/savepoint-1"},
            "spec.directory = s3://b/s: what is adopted is already somewhere."
            " Remedy: remove directory or adoptPath.",
            id="K5 what is adopted is not taken",
        ),
        pytest.param(
            {"type": "checkpoint", "directory": "s3://b/s"},
            "spec.directory = s3://b/s: a checkpoint is stored in the job's own storage."
            " Remedy: remove directory or set type to savepoint.",
            id="K5 a checkpoint is in the storage",
        ),
        pytest.param(
            {"type": "checkpoint", "disposeOnDelete": True},
            "spec.disposeOnDelete = true: a checkpoint belongs to its job, which deletes it."
            " Remedy: set disposeOnDelete to false or type to savepoint.",
            id="K5 a checkpoint belongs to its job",
        ),
        pytest.param(
            {"adoptPath": "file:///data/savepoints/1", "disposeOnDelete": True},
            "spec.disposeOnDelete = true: files under file:// are on a volume that only pods of"
            " the job have. Remedy: set disposeOnDelete to false, and delete them yourself.",
            id="K5 what is on a volume is not disposed of",
        ),
    ],
)
def test_a_snapshot_that_cannot_be_taken_is_refused(given, line):
    """K5."""
    assert str(validate_snapshot(overlaid(SNAPSHOT, given))) == line


def test_a_snapshot_is_taken_once():
    """K5: what it stands for never changes."""
    before = validate_snapshot(SNAPSHOT)
    assert not isinstance(before, Rejected)

    assert str(validate_snapshot({"jobName": "users"}, before)) == (
        "spec.jobName = users: it was orders, and a snapshot is taken once."
        " Remedy: make another snapshot."
    )


def test_whether_files_go_with_their_snapshot_can_be_changed():
    """K5."""
    before = validate_snapshot(SNAPSHOT)
    assert not isinstance(before, Rejected)

    after = validate_snapshot(SNAPSHOT | {"disposeOnDelete": True}, before)

    assert not isinstance(after, Rejected)
    assert after.dispose_on_delete
