"""The ConfigMap of one attempt: the job's configuration, Spark's, and the executors' template.

Its name contains the attempt and it is immutable, so an older driver that still runs never sees the
configuration of a newer one. The restore point is not in here but in the driver's environment
variables, which take precedence: the configuration is the same for all attempts at one
specification.
"""

import json

from weir_operator.manifests.driver_attempt import DriverAttempt
from weir_operator.manifests.executor_template import executor_template
from weir_operator.manifests.object_names import attempt_labels, config_name
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_layout import EXECUTOR_FILE, JOB_FILE, SPARK_FILE, TLS_DIRECTORY
from weir_operator.manifests.spark_defaults import spark_defaults
from weir_operator.resource.api_group import JOB


def config(owner: Owner, driver: DriverAttempt) -> Manifest:
    name = config_name(owner.name, driver.attempt)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owner.metadata(JOB, name, attempt_labels(owner.name, driver.attempt)),
        "immutable": True,
        "data": {
            JOB_FILE: _json(_job_config(driver)),
            SPARK_FILE: spark_defaults(owner, driver),
            EXECUTOR_FILE: _json(executor_template(owner, driver)),
        },
    }


def _job_config(driver: DriverAttempt) -> Manifest:
    """As ``weir.api`` reads it, without what environment variables carry."""
    given = driver.spec.config().model_dump(mode="json", exclude_none=True)
    by_variable = {"path", "claimMode", "allowNonRestoredState"}
    recovery = {name: value for name, value in given["recovery"].items() if name not in by_variable}
    overrides = {
        "state": given["state"] | {"localRecovery": driver.keeps_local_copies},
        "recovery": recovery if driver.may_restore else {},
    }
    if driver.spec.tls_secret is not None:
        overrides["tlsDir"] = TLS_DIRECTORY
    return given | overrides


def _json(tree: Manifest) -> str:
    """JSON is valid YAML, with the same meaning in each YAML version."""
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"
