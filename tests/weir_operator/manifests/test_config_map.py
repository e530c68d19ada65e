"""A driver is given the job's configuration as the user wrote it, but for what was decided."""

import json

import pytest

from sample_driver import LAST_STATE, OWNER, a_config, a_spec, an_attempt
from weir.api.config import load_config
from weir_operator.manifests import config
from weir_operator.resource.status_fields import RestorePoint, RestoreType

SAVEPOINT = "s3://bucket/savepoint-1"
FROM_PATH = RestorePoint(
    type=RestoreType.PATH, path=SAVEPOINT, deployment=1, recorded_at=LAST_STATE.recorded_at
)


def job(**above):
    return json.loads(a_config(**above)["job.json"])


def test_the_driver_reads_what_the_user_wrote():
    """K1: one model on both sides."""
    above = {
        "parallelism": 4,
        "healthWindow": "5 min",
        "checkpointing": {"timeout": "1 h", "retained": 5},
        "restart": {"type": "none"},
    }

    assert load_config(job(**above)) == a_spec(**above).config()


def test_what_it_starts_from_is_not_in_it():
    """K4: that is another thing for each start, and comes with the pod."""
    recovery = job(recovery={"path": SAVEPOINT, "claimMode": "CLAIM"})["recovery"]

    assert not {"path", "claimMode"} & recovery.keys()


@pytest.mark.parametrize("restore", [LAST_STATE, FROM_PATH])
@pytest.mark.parametrize("checkpointing", [{}, {"interval": "0 ms", "storage": None}])
def test_it_can_be_read_whatever_the_job_once_started_from(checkpointing, restore):
    """K4: a permission about a path must not be refused when the path is no longer asked for."""
    given = job(
        restore=restore,
        checkpointing=checkpointing,
        recovery={"path": SAVEPOINT, "allowNonRestoredState": True},
        upgrade={"mode": "stateless"},
    )

    assert load_config(given).recovery.path is None


@pytest.mark.parametrize(("asked", "lasts"), [(True, True), (True, False), (False, True)])
def test_local_recovery_is_on_where_it_was_asked_for_and_lasts(asked, lasts):
    """K8: otherwise it would cost a second write and give nothing back."""
    given = job(
        local_recovery=lasts,
        state={"localRecovery": asked},
        localRecoveryVolume="copies",
        executor={"volumes": [{"name": "copies", "hostPath": {"path": "/var/lib/weir"}}]},
    )

    assert given["state"]["localRecovery"] is (asked and lasts)


def test_certificates_of_a_secret_are_where_it_is_mounted():
    """X1."""
    assert job(tlsSecret="orders-tls")["tlsDir"] == "/etc/weir-tls"


def test_it_is_the_attempts_own_and_never_changes():
    """K3: an older driver that lives on is not handed what was meant for a newer one."""
    made = config(OWNER, an_attempt())

    assert made["metadata"]["name"] == "orders-config-7"
    assert made["immutable"] is True
