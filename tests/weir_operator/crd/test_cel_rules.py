"""The API server refuses by schema and rule what the operator refuses, wherever it can.

Both are shown the same table. Where a row says that only the operator can refuse it, the definition
must let it pass, so that the row stays true.
"""

from pathlib import Path

import pytest

from crd_admission import admit
from invalid_specs import SOUND, cases, overlaid
from weir.api import RestartType
from weir_operator.crd.cel_rules import job_rules, snapshot_rules
from weir_operator.crd.definitions import job_definition, snapshot_definition
from weir_operator.resource import CheckpointedJobSpec, Rejected, validate_job, validate_snapshot
from weir_operator.resource.validation import LARGEST_SPEC_BYTES

TABLE = Path(__file__).parent.parent / "resource" / "refusals.txt"
CASES = list(cases(TABLE))
JOB, SNAPSHOT = job_definition(), snapshot_definition()


def a_job(spec, name="orders"):
    return {"metadata": {"name": name}, "spec": spec}


def admitted(case):
    before = None if case.before is None else a_job(case.before)
    return admit(JOB, a_job(case.spec), before)


def first_refusal(admission):
    return "schema" if admission.by_schema else "rule" if admission.by_rule else "operator"


@pytest.mark.parametrize("case", CASES, ids=[case.promise for case in CASES])
def test_who_refuses_a_specification_first_is_who_the_table_says(case):
    """K1."""
    who, _, why = case.refused_by.partition(": ")

    assert first_refusal(admitted(case)) == who
    assert bool(why) == (who == "operator"), "only the operator's turn needs a reason"


def test_every_rule_has_refused_something():
    """K1: a rule that has never refused anything may well be unable to."""
    refused = {message for case in CASES for message in admitted(case).by_rule}
    shown_elsewhere = {"", "spec.restart", *(rule.at for rule in ZEROS)}

    rules = (rule for rule in job_rules() if rule not in SIZES)
    expected = {rule.message for rule in rules if rule.at not in shown_elsewhere}

    assert expected - refused == set()


SIZES = [rule for rule in job_rules() if str(LARGEST_SPEC_BYTES) in rule.cel]
VARIABLES = [{"name": f"V{number}", "value": "x" * 8_192} for number in range(17)]
LARGE = {
    "sparkConf": {"sparkConf": {f"spark.x.{number}": "x" * 4_096 for number in range(32)}},
    "arguments": {"job": SOUND["job"] | {"arguments": ["x" * 4_096] * 33}},
    "driver": {"driver": {"env": VARIABLES}},
    "both": {"driver": {"env": VARIABLES[:9]}, "executor": {"env": VARIABLES[:8]}},
}


@pytest.mark.parametrize("part", LARGE)
def test_a_specification_too_large_is_refused_by_both(part):
    """K1 K9: wherever its text is, and however little of it each part has."""
    spec = overlaid(SOUND, LARGE[part])

    assert admit(JOB, a_job(spec)).by_rule == tuple(rule.message for rule in SIZES)
    assert "131072 bytes" in str(validate_job("orders", spec))


def test_a_large_specification_below_the_limit_is_admitted():
    """K1."""
    spec = overlaid(SOUND, {"driver": {"env": VARIABLES[:15]}})

    assert admit(JOB, a_job(spec)).by_rule == ()
    assert isinstance(validate_job("orders", spec), CheckpointedJobSpec)


def test_a_pod_template_too_large_is_left_to_the_operator():
    """K1 K9: a rule cannot see what a template holds."""
    spec = overlaid(SOUND, {"driver": {"podTemplate": {"metadata": {"annotations": {"a": BIG}}}}})

    assert admit(JOB, a_job(spec)).by_rule == ()
    assert isinstance(validate_job("orders", spec), Rejected)


BIG = "x" * LARGEST_SPEC_BYTES


ZEROS = [rule for rule in job_rules() if rule.cel == "self.matches('[1-9]')"]


@pytest.mark.parametrize("rule", ZEROS, ids=[rule.at for rule in ZEROS])
def test_an_amount_that_cannot_be_zero_is_refused_by_both(rule):
    """C6, R2, K1."""
    above: dict[str, object] = {}
    place = above
    *parents, field = rule.at.split(".")[1:]
    for name in parents:
        inner: dict[str, object] = {}
        place[name] = inner
        place = inner
    place[field] = "0 B" if field == "memoryLimit" else "0 ms"
    if field == "failureRateInterval":
        place["type"] = "failure-rate"
    given = overlaid(SOUND, above)

    assert rule.message in admit(JOB, a_job(given)).by_rule
    assert isinstance(validate_job("orders", given), Rejected)


FIELDS = {
    "attempts": 3,
    "delay": "1 s",
    "initialBackoff": "1 s",
    "maxBackoff": "1 min",
    "backoffMultiplier": 2.0,
    "resetBackoffThreshold": "1 h",
    "jitterFactor": 0.5,
    "maxFailuresPerInterval": 3,
    "failureRateInterval": "1 min",
}


@pytest.mark.parametrize("kind", RestartType)
@pytest.mark.parametrize("field", FIELDS)
def test_both_agree_which_field_belongs_to_which_strategy(kind, field):
    """R2."""
    given = overlaid(SOUND, {"restart": {"type": str(kind), field: FIELDS[field]}})

    by_operator = isinstance(validate_job("orders", given), Rejected)

    assert bool(admit(JOB, a_job(given)).by_rule) == by_operator


@pytest.mark.parametrize(
    "above",
    [
        pytest.param({}, id="K1 a sound specification"),
        pytest.param({"parallelism": 128, "maxParallelism": 128}, id="S11 one key group each"),
        pytest.param({"job": {"file": None, "url": "s3://b/job.py"}}, id="K1 a file in an S3"),
        pytest.param({"job": {"file": None, "configMap": {"name": "jobs"}}}, id="K1 a ConfigMap"),
        pytest.param({"healthWindow": "1 min"}, id="R8 a health window"),
        pytest.param(
            {
                "checkpointing": {"interval": "5 ms", "storage": None},
                "upgrade": {"mode": "stateless"},
            },
            id="C2 under ten milliseconds is off",
        ),
        pytest.param(
            {
                "checkpointing": {
                    "storage": "memory://",
                    "retention": "NEVER_RETAIN_AFTER_TERMINATION",
                },
                "upgrade": {"mode": "stateless"},
            },
            id="S7 memory, for as long as it lasts",
        ),
        pytest.param(
            {"checkpointing": {"storage": "abfss://container@account/x"}}, id="S7 a container"
        ),
        pytest.param({"checkpointing": {"storage": "hdfs://host:8020/x"}}, id="S7 a port"),
        pytest.param({"checkpointing": {"storage": "file:///a b"}}, id="S7 a path with a space"),
        pytest.param(
            {"checkpointing": {"minPause": "0 s", "maxConcurrent": 4}}, id="C6 no pause at all"
        ),
        pytest.param(
            {"upgrade": {"mode": "savepoint"}, "checkpointing": {"savepointDir": "s3://b/s"}},
            id="K4 savepoints",
        ),
        pytest.param(
            {
                "recovery": {"path": "s3://b/s/savepoint-1", "claimMode": "CLAIM"},
                "redeployNonce": 7,
            },
            id="K6 a redeployment",
        ),
        pytest.param(
            {"savepoints": {"cron": "0 */6 * * *"}, "checkpointing": {"savepointDir": "s3://b/s"}},
            id="K5 a schedule",
        ),
        pytest.param(
            {
                "state": {"localRecovery": True},
                "localRecoveryVolume": "copies",
                "executor": {
                    "volumes": [{"name": "copies", "hostPath": {"path": "/mnt"}}],
                    "volumeMounts": [{"name": "copies", "mountPath": "/copies"}],
                },
            },
            id="K8 a volume for local copies",
        ),
        pytest.param(
            {"driver": {"resources": {"requests": {"cpu": 1}, "limits": {"cpu": "1000m"}}}},
            id="K2 a request as high as its limit",
        ),
        pytest.param({"sparkConf": {"spark.executor.memory": "1g"}}, id="K1 a setting of Spark"),
        pytest.param(
            {"driver": {"podTemplate": {"spec": {"nodeSelector": {"disk": "ssd"}}}}},
            id="K2 a template",
        ),
    ],
)
def test_what_lies_beside_a_refusal_is_accepted_by_both(above):
    """A rule that refuses too much is as wrong, and a rule stricter than the operator misleads."""
    given = overlaid(SOUND, above)
    admission = admit(JOB, a_job(given))

    assert (admission.by_schema, admission.by_rule) == ((), ())
    stored = validate_job("orders", admission.stored["spec"])
    assert isinstance(stored, CheckpointedJobSpec), stored
    assert stored == validate_job("orders", given), "defaults filled in change nothing"


@pytest.mark.parametrize(
    ("written", "is_periodic"),
    [
        ("0 ms", False),
        ("9 ms", False),
        ("9", False),
        ("5 millis", False),
        ("0 s", False),
        ("10 ms", True),
        ("10", True),
        ("1 s", True),
        ("1s", True),
        ("1 MIN", True),
        ("1m", True),
        ("2 h", True),
        ("1 day", True),
        ("0 min 30 s", True),
    ],
)
def test_rules_tell_an_interval_that_makes_checkpoints(written, is_periodic):
    """C2: never one that does not, or a sound specification would be refused."""
    given = overlaid(
        SOUND,
        {"checkpointing": {"interval": written, "storage": None}, "upgrade": {"mode": "stateless"}},
    )

    assert bool(admit(JOB, a_job(given)).by_rule) == is_periodic
    assert isinstance(validate_job("orders", given), Rejected) == is_periodic


@pytest.mark.parametrize("name", ["Orders", "1st", "orders-", "o" * 41, "o" * 40, "orders"])
def test_both_agree_on_names(name):
    """K1, K2."""
    by_operator = isinstance(validate_job(name, SOUND), Rejected)

    assert bool(admit(JOB, a_job(SOUND, name)).by_rule) == by_operator


SNAPSHOTS = [
    ({"adoptPath": "s3://b/s/savepoint-1"}, {"adoptPath": "s3://b/s/savepoint-1"}),
    ({}, {"disposeOnDelete": True}),
    ({}, {"jobName": "users"}),
    ({}, {"type": "checkpoint"}),
    ({}, {"trigger": "periodic"}),
    ({}, {"adoptPath": "s3://b/s/savepoint-1"}),
    ({"directory": "s3://b/s"}, {"directory": "s3://b/t"}),
    (None, {"directory": "s3://b/s", "adoptPath": "s3://b/s/savepoint-1"}),
    (None, {"directory": "s3://key:secret@b/s"}),
    (None, {"type": "checkpoint", "directory": "s3://b/s"}),
    (None, {"type": "checkpoint", "disposeOnDelete": True}),
    (None, {"type": "checkpoint"}),
    (None, {"directory": "file:///data/savepoints"}),
    (None, {"directory": "file:///data/savepoints", "disposeOnDelete": True}),
    (None, {"adoptPath": "file:///data/savepoints/1", "disposeOnDelete": True}),
    ({"adoptPath": "file:///data/1"}, {"adoptPath": "file:///data/1", "disposeOnDelete": True}),
    (None, {"adoptPath": "s3://key:secret@b/s"}),
]


def judged_by_both(before, after):
    old = None if before is None else {"jobName": "orders", **before}
    new = {"jobName": "orders", **after}
    admission = admit(SNAPSHOT, {"spec": new}, old and {"spec": old})
    known = None if old is None else validate_snapshot(old)
    assert not isinstance(known, Rejected)
    return admission, validate_snapshot(new, known)


@pytest.mark.parametrize(("before", "after"), SNAPSHOTS)
def test_both_agree_on_snapshots(before, after):
    """K5."""
    admission, judged = judged_by_both(before, after)

    assert bool(admission.by_schema + admission.by_rule) == isinstance(judged, Rejected)


def test_every_rule_of_a_snapshot_has_refused_something():
    """K5."""
    refused = {m for pair in SNAPSHOTS for m in judged_by_both(*pair)[0].by_rule}

    assert {rule.message for rule in snapshot_rules()} - refused == set()
