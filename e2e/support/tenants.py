"""The tenants of a cluster: a namespace for each, and the permissions of an account.

The API server itself determines permissions, asked as that account; no role is read here.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from chart import Helm
from cluster import Cluster

REVIEWS = "authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Account:
    """A service account."""

    cluster: Cluster
    namespace: str
    name: str

    def everything(self, namespace: str) -> set[str]:
        """All that it may do in a namespace, as in ``get pods`` or ``patch cpj.weir.dev``."""
        status = self._reviewed("SelfSubjectRulesReview", {"namespace": namespace})
        return {
            " ".join((verb, _full(resource, group), *rule.get("resourceNames", ())))
            for rule in status["resourceRules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    def may(self, deed: str, namespace: str) -> bool:
        """Whether it may do one thing, as in ``create pods/exec``."""
        verb, _, what = deed.partition(" ")
        name, _, part = what.partition("/")
        resource, _, group = name.partition(".")
        asked = {"verb": verb, "group": group, "resource": resource, "subresource": part}
        wish = {"resourceAttributes": {**asked, "namespace": namespace}}
        return bool(self._reviewed("SelfSubjectAccessReview", wish)["allowed"])

    def _reviewed(self, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        review = {"apiVersion": f"{REVIEWS}/v1", "kind": kind, "spec": spec}
        who = f"--as=system:serviceaccount:{self.namespace}:{self.name}"
        command = ("create", "--validate=false", "-f", "-", "-o", "json", who)
        said = self.cluster.kubectl(*command, given=json.dumps(review))
        return dict(json.loads(said)["status"])


def _full(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


@contextmanager
def tenant(cluster: Cluster, namespace: str) -> Iterator[str]:
    """A namespace with what the chart gives to each of ``jobNamespaces``, and the way to the S3."""
    cluster.kubectl("create", "namespace", namespace)
    try:
        secret = {**cluster.look("secret", "s3"), "metadata": {"name": "s3"}}
        rendered = Helm(cluster).objects(f"jobNamespaces={{{namespace}}}")
        given = [o for o in rendered if o["metadata"].get("namespace") == namespace]
        documents = yaml.safe_dump_all([secret, *given])
        cluster.kubectl("apply", "-f", "-", given=documents, namespace=namespace)
        yield namespace
    finally:
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")
