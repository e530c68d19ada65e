"""The NetworkPolicy of one job: its pods reach each other, and selected peers reach its API.

Every job has one, because the operator manages jobs in namespaces that the chart does not know. The
peers are the operator itself and those that its administrator configured, such as a Prometheus;
they reach the port of the driver's API and no other. Whether the network enforces policies depends
on the cluster. Egress is not limited: a job reads and writes where its author wants.
"""

from collections.abc import Mapping, Sequence

from weir_operator.manifests.object_names import JOB_LABEL, labels, network_policy_name
from weir_operator.manifests.owner_reference import Manifest, Owner
from weir_operator.manifests.pod_layout import API_PORT
from weir_operator.resource.api_group import JOB

Peers = Sequence[Mapping[str, object]]
"""NetworkPolicyPeers, as in Kubernetes."""


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
    if peers:  # a rule without peers would allow all traffic
        rules.append({"from": list(peers), "ports": [{"port": API_PORT, "protocol": "TCP"}]})
    return {**own_pods, "policyTypes": ["Ingress"], "ingress": rules}
