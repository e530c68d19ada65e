"""The NetworkPolicy of one job: its pods are reached by each other, and its API by a few others.

A job has one wherever it runs, because the operator looks after jobs in namespaces that no chart
has heard of. The peers are the operator itself and those whom its administrator named, such as a
Prometheus; they reach the port of the driver's API and no other. Whether the network enforces
policies is the cluster's affair. What pods send is not limited: a job reads and writes where its
author wants.
"""

from collections.abc import Mapping, Sequence

from weir_operator.manifests.object_names import JOB_LABEL, labels, network_policy_name
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_layout import API_PORT
from weir_operator.resource.api_group import JOB

Peers = Sequence[Mapping[str, object]]
"""Peers of a NetworkPolicy, in the words of Kubernetes."""


def network_policy(owner: Owner, peers: Peers) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": owner.metadata(JOB, network_policy_name(owner.name), labels(owner.name)),
        "spec": network_policy_spec(owner.name, peers),
    }


def network_policy_spec(job: str, peers: Peers) -> Manifest:
    """As the API server stores it, so that the two can be compared."""
    own_pods = {"podSelector": {"matchLabels": {JOB_LABEL: job}}}
    rules: list[Manifest] = [{"from": [own_pods]}]
    if peers:  # a rule without peers would let everybody in
        rules.append({"from": list(peers), "ports": [{"port": API_PORT, "protocol": "TCP"}]})
    return {**own_pods, "policyTypes": ["Ingress"], "ingress": rules}
