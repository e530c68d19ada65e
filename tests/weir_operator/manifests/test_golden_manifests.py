"""All that is made for one job, as it would be sent: read ``golden-manifests.yaml``.

`./dev test tests/weir_operator/manifests/test_golden_manifests.py --rewrite` accepts what has
changed; read the difference.
"""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from known_fields import unknown_fields
from weir_operator.manifests import (
    DriverAttempt,
    Owner,
    budget,
    config,
    disposal_job,
    driver_pod,
    keys,
    network_policy,
    service,
)
from weir_operator.resource import CheckpointedJobSpec
from weir_operator.resource.snapshot import DisposalMeans
from weir_operator.resource.status_fields import RestorePoint, RestoreType

GOLDEN = Path(__file__).with_name("golden-manifests.yaml")

OWNER = Owner("running-sums", "default", "uid-of-the-job")
SNAPSHOT = Owner("running-sums-nightly", "default", "uid-of-the-snapshot")
SPEC = CheckpointedJobSpec.model_validate(
    {
        "image": "localhost/weir:dev",
        "imagePullPolicy": "Never",
        "job": {"configMap": {"name": "running-sums-job", "key": "sums_by_key.py"}},
        "parallelism": 2,
        "standbySlots": 1,
        "checkpointing": {"interval": "10 s", "storage": "s3://weir/checkpoints"},
        "state": {"localRecovery": True},
        "localRecoveryVolume": "copies",
        "storageSecrets": ["s3"],
        "tlsSecret": "running-sums-tls",
        "sparkConf": {"spark.sql.session.timeZone": "UTC"},
        "driver": {
            "resources": {
                "requests": {"cpu": "200m", "memory": "1Gi"},
                "limits": {"memory": "1500Mi"},
            },
            "env": [{"name": "DEMO_ROWS", "value": "100000"}],
            "podTemplate": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}},
        },
        "executor": {
            "resources": {"requests": {"cpu": "200m"}, "limits": {"memory": "1280Mi"}},
            "volumes": [{"name": "copies", "hostPath": {"path": "/var/lib/weir"}}],
        },
    }
)
ORDER = DriverAttempt(
    name="running-sums-driver-3",
    attempt=3,
    spec=SPEC,
    restore=RestorePoint(
        type=RestoreType.LAST_STATE,
        lowest_checkpoint=41,
        deployment=2,
        recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
    ),
    job_id="running-sums-4f2a",
    local_recovery=True,
)
MADE = (
    keys(OWNER, "drawn elsewhere", "and this too"),
    service(OWNER),
    budget(OWNER, SPEC),
    network_policy(OWNER, ({"ipBlock": {"cidr": "10.1.0.0/16"}},)),
    config(OWNER, ORDER),
    driver_pod(OWNER, ORDER),
    disposal_job(
        SNAPSHOT,
        "s3://weir/savepoints/savepoint-1",
        DisposalMeans(image=SPEC.image, service_account="weir-driver", storage_secrets=("s3",)),
    ),
)


class Plainly(yaml.SafeDumper):
    """Writes equal parts out, and lines as lines."""

    def ignore_aliases(self, data):
        del data
        return True


def _lines(dumper, text):
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


Plainly.add_representer(str, _lines)


def test_a_job_is_still_made_as_it_was(request):
    """K2 K9: a change of a manifest is visible in the review."""
    text = yaml.dump_all(MADE, Dumper=Plainly, sort_keys=False, allow_unicode=True, width=100)

    if request.config.getoption("--rewrite"):
        GOLDEN.write_text(text, encoding="utf-8")
    else:
        assert text == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("manifest", MADE, ids=lambda manifest: manifest["kind"])
def test_kubernetes_knows_every_field(manifest):
    """K2: an unknown one is silently ignored."""
    assert list(unknown_fields(manifest, f"V1{manifest['kind']}")) == []


def test_kubernetes_knows_every_field_of_the_executors_template():
    """K2."""
    template = yaml.safe_load(config(OWNER, ORDER)["data"]["executor.yaml"])

    assert list(unknown_fields(template, "V1Pod")) == []


def test_a_misspelt_field_would_be_found():
    """K2: a check that finds nothing may be unable to."""
    pod = {"spec": {"containers": [{"name": "driver", "imagePulPolicy": "Never"}]}}

    assert list(unknown_fields(pod, "V1Pod")) == [".spec.containers[0].imagePulPolicy"]
