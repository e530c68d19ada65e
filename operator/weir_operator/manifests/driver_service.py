"""The Service of a job's driver, whichever attempt it is.

It outlives attempts, so its selector has no attempt. It is headless: users need only a DNS name for
the driver's pod, even before the driver is ready.
"""

from weir_operator.manifests.object_names import Role, labels, selector, service_name
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_layout import PORTS
from weir_operator.resource.api_group import JOB


def service(owner: Owner) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owner.metadata(JOB, service_name(owner.name), labels(owner.name)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector(owner.name, Role.DRIVER),
            "ports": [{"name": name, "port": port} for name, port in PORTS.items()],
        },
    }
