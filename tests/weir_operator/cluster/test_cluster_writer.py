"""What stands beside a driver is made as the plan decided, however often it is made."""

import json

from reconciled_job import NAMESPACE, OperatedJob
from weir_operator.cluster.api_paths import CLAIMS, CONFIG_MAPS, VOLUMES, Key
from weir_operator.controller.job_reconciler import THOROUGH_EVERY
from weir_operator.manifests.pod_layout import JOB_FILE

CONFIG = CONFIG_MAPS.of(Key(NAMESPACE, "orders-config-1"))
ASKED = {
    "state": {"localRecovery": True},
    "localRecoveryVolume": "disk",
    "executor": {"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "mine"}}]},
}


def put_claim(job, **claim):
    job.api.put(CLAIMS.of(Key(NAMESPACE, "mine")), {"metadata": {"name": "mine"}, **claim})


def keeps_copies(job):
    return json.loads(job.api.objects[CONFIG]["data"][JOB_FILE])["state"]["localRecovery"]


def test_the_configuration_of_an_attempt_is_the_same_when_it_is_made_again():
    """K3 K8: though the claim, which was pending when its driver was made, is bound since."""
    job = OperatedJob(**ASKED)
    put_claim(job, status={"phase": "Pending"})
    job.is_running()
    assert not keeps_copies(job)
    local = {"metadata": {"name": "pv"}, "spec": {"local": {"path": "/d"}}}
    job.api.put(VOLUMES.of_cluster("pv"), local)
    put_claim(job, spec={"volumeName": "pv"}, status={"phase": "Bound"})
    del job.api.objects[CONFIG]

    job.time += THOROUGH_EVERY
    job.look()

    assert not keeps_copies(job)
    assert "set another restartNonce" in job.status.local_recovery.reason
