"""The ConfigMap of one attempt: the job's configuration, Spark's, and the executors' template.

It has the attempt's number in its name and never changes, so an older driver that lives on is not
handed what was meant for a newer one. What an attempt starts from is not in here but in the
driver's variables, which win: the configuration is the same for all attempts at one specification.
"""

import json

from weir_operator.manifests.driver_attempt import DriverOrder
from weir_operator.manifests.executor_template import executor_template
from weir_operator.manifests.object_names import attempt_labels, config_name
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_layout import EXECUTOR_FILE, JOB_FILE, SPARK_FILE, TLS_DIRECTORY
from weir_operator.manifests.spark_defaults import spark_defaults
from weir_operator.resource.api_group import JOB


def config(owner: Owner, order: DriverOrder) -> Manifest:
    name = config_name(owner.name, order.attempt)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owner.metadata(JOB, name, attempt_labels(owner.name, order.attempt)),
        "immutable": True,
        "data": {
            JOB_FILE: _json(_job_config(order)),
            SPARK_FILE: spark_defaults(owner, order),
            EXECUTOR_FILE: _json(executor_template(owner, order)),
        },
    }


def _job_config(order: DriverOrder) -> Manifest:
    """As ``weir.api`` reads it, without what travels by variables."""
    given = order.spec.config().model_dump(mode="json", exclude_none=True)
    by_variable = {"path", "claimMode", "allowNonRestoredState"}
    recovery = {name: value for name, value in given["recovery"].items() if name not in by_variable}
    decided = {
        "state": given["state"] | {"localRecovery": order.keeps_local_copies},
        "recovery": recovery if order.may_restore else {},
    }
    if order.spec.tls_secret is not None:
        decided["tlsDir"] = TLS_DIRECTORY
    return given | decided


def _json(tree: Manifest) -> str:
    """JSON is YAML too, and means the same in each of its versions."""
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"
