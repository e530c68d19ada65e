"""The Secret with a job's two keys, created once and kept for all its attempts.

One authenticates the operator at the driver's API (spec X1), the other signs pickled objects of
users (spec X2); with another signing key a job could not read its own checkpoints. The keys are
generated elsewhere: nothing here is random. This is the only manifest that contains a secret (spec
X4).
"""

from weir_operator.manifests.object_names import keys_name, labels
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.resource.api_group import JOB

TOKEN = "token"  # noqa: S105 - the name of the key
SECRET = "secret"  # noqa: S105 - the name of the key


def keys(owner: Owner, token: str, secret: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": owner.metadata(JOB, keys_name(owner.name), labels(owner.name)),
        "type": "Opaque",
        "immutable": True,
        "stringData": {TOKEN: token, SECRET: secret},
    }
