"""What stands beside a driver: keys, a name to find it by, a budget for its executors."""

import json

import pytest

from sample_driver import OWNER, a_spec, an_attempt
from weir_operator.manifests import budget, config, driver_pod, keys, network_policy, service


def test_the_keys_are_those_that_were_drawn():
    """X1 X2."""
    assert keys(OWNER, "t0ken", "s3cret")["stringData"] == {"token": "t0ken", "secret": "s3cret"}


def test_no_other_manifest_holds_a_secret():
    """X4: all others name the one that does."""
    others = [service(OWNER), config(OWNER, an_attempt()), driver_pod(OWNER, an_attempt())]

    assert {manifest["kind"] for manifest in others}.isdisjoint({"Secret"})
    assert "stringData" not in json.dumps(others)


def test_the_service_finds_a_driver_of_any_attempt():
    """K2: it outlives them, and leads there before the driver is ready."""
    made = service(OWNER)["spec"]

    assert made["selector"] == {"weir.dev/job": "orders", "weir.dev/role": "driver"}
    assert made["publishNotReadyAddresses"] is True
    assert made["clusterIP"] == "None"


def test_the_service_leads_to_the_drivers_pod():
    """K2."""
    selector = service(OWNER)["spec"]["selector"]

    assert selector.items() <= driver_pod(OWNER, an_attempt())["metadata"]["labels"].items()


@pytest.mark.parametrize(("parallelism", "must_stay"), [(1, 0), (2, 1), (8, 7)])
def test_a_cluster_may_take_one_executor_at_a_time(parallelism, must_stay):
    """K9: only minAvailable works, since executors belong to a pod."""
    made = budget(OWNER, a_spec(parallelism=parallelism))["spec"]

    assert made["minAvailable"] == must_stay
    assert made["selector"]["matchLabels"] == {
        "weir.dev/job": "orders",
        "weir.dev/role": "executor",
    }


OPERATOR = {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "weir-operator"}}}


def test_the_pods_of_a_job_are_reached_by_each_other_and_by_no_pod_of_another_job():
    """K9: the selector has no namespaces, so it means the job's own."""
    made = network_policy(OWNER, (OPERATOR,))["spec"]
    own = {"matchLabels": {"weir.dev/job": "orders"}}

    assert (made["podSelector"], made["policyTypes"]) == (own, ["Ingress"])
    assert made["ingress"][0] == {"from": [{"podSelector": own}]}
    assert (
        own["matchLabels"].items() <= driver_pod(OWNER, an_attempt())["metadata"]["labels"].items()
    )


def test_the_operator_reaches_the_api_of_a_driver_and_nothing_else():
    """K9."""
    _, rule = network_policy(OWNER, (OPERATOR,))["spec"]["ingress"]

    assert rule == {"from": [OPERATOR], "ports": [{"port": 8081, "protocol": "TCP"}]}


def test_a_network_policy_without_peers_does_not_allow_all_traffic():
    """K9: to Kubernetes, a rule with an empty list of peers allows all traffic."""
    (rule,) = network_policy(OWNER, ())["spec"]["ingress"]

    assert rule["from"]


def test_all_of_it_belongs_to_the_resource():
    """K2 K10: it goes when the resource goes, even while no operator runs."""
    made = [
        keys(OWNER, "", ""),
        service(OWNER),
        config(OWNER, an_attempt()),
        budget(OWNER, a_spec()),
        network_policy(OWNER, (OPERATOR,)),
    ]

    for manifest in made:
        (owner,) = manifest["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("CheckpointedJob", OWNER.uid)
