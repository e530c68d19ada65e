"""What stands beside a driver is made as the plan decided, however often it is made."""

import json

from reconciled_job import NAMESPACE, ReconciledJob
from weir_operator.cluster.api_paths import CLAIMS, CONFIG_MAPS, VOLUMES, NamespacedName
from weir_operator.controller.job_reconciler import FULL_READ_PERIOD
from weir_operator.manifests.pod_layout import JOB_FILE

CONFIG = CONFIG_MAPS.object_path(NamespacedName(NAMESPACE, "orders-config-1"))
ASKED = {
    "state": {"localRecovery": True},
    "localRecoveryVolume": "disk",
    "executor": {"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "mine"}}]},
}


def put_claim(job, **claim):
    job.api.put(
        CLAIMS.object_path(NamespacedName(NAMESPACE, "mine")),
        {"metadata": {"name": "mine"}, **claim},
    )


def keeps_copies(job):
    return json.loads(job.api.objects[CONFIG]["data"][JOB_FILE])["state"]["localRecovery"]


def test_the_configuration_of_an_attempt_is_the_same_when_it_is_made_again():
    """K3 K8: though the claim, which was pending when its driver was made, is bound since."""
    job = ReconciledJob(**ASKED)
    put_claim(job, status={"phase": "Pending"})
    job.is_running()
    assert not keeps_copies(job)
    local = {"metadata": {"name": "pv"}, "spec": {"local": {"path": "/d"}}}
    job.api.put(VOLUMES.cluster_object_path("pv"), local)
    put_claim(job, spec={"volumeName": "pv"}, status={"phase": "Bound"})
    del job.api.objects[CONFIG]

    job.time += FULL_READ_PERIOD
    job.reconcile()

    assert not keeps_copies(job)
    assert "change restartNonce" in job.status.local_recovery.reason
