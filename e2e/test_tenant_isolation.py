"""Tenants of one cluster are isolated: by accounts, by tokens, by Secrets, and by the network.

A tenant is a namespace. Two jobs of the same name run in two of them, and each tries to reach the
other. Whether the network enforces policies depends on the cluster; the test detects and shows it.
"""

import base64
import json
import re
import time

import pytest
from fastapi.routing import iter_route_contexts

from applied_job import AppliedJob, names
from chart import NAMESPACE
from fake_job_view import FakeJobView
from pod_calls import Call, Pod
from random_seed import show
from tenants import Account, tenant
from weir.rest.app import create_app
from weir_operator.manifests.object_names import keys_name, network_policy_name
from weir_operator.manifests.pod_layout import API_PORT

OF_SPARK = {
    "pods": ("get", "list", "watch", "create", "patch", "delete", "deletecollection"),
    "configmaps": ("create", "deletecollection"),
    "persistentvolumeclaims": ("get", "list", "create", "patch", "deletecollection"),
}
AS_DRIVER = {f"{verb} {resource}" for resource, verbs in OF_SPARK.items() for verb in verbs}

AS_ANYBODY = {
    "create selfsubjectaccessreviews.authorization.k8s.io",
    "create selfsubjectrulesreviews.authorization.k8s.io",
    "create selfsubjectreviews.authentication.k8s.io",
}
"""Kubernetes lets every account ask about itself."""

NEVER = (
    "get secrets",
    "list secrets",
    "create secrets",
    "get configmaps",
    "create services",
    "create pods/exec",
    "create pods/attach",
    "create serviceaccounts/token",
    "create rolebindings.rbac.authorization.k8s.io",
    "get checkpointedjobs.weir.dev",
    "patch checkpointedjobs.weir.dev",
    "create checkpointedjobsnapshots.weir.dev",
    "list nodes",
    "list namespaces",
)

OPEN = {
    ("GET", "/healthz"),
    ("GET", "/metrics"),
    ("GET", "/v1/openapi.json"),
    ("HEAD", "/v1/openapi.json"),
    ("GET", "/v1/job"),
    ("GET", "/v1/job/graph"),
    ("GET", "/v1/job/checkpoints"),
    ("GET", "/v1/job/checkpoints/config"),
    ("GET", "/v1/job/checkpoints/{checkpoint}"),
    ("GET", "/v1/job/checkpoints/{checkpoint}/subtasks/{operator:path}"),
    ("GET", "/v1/job/requests/{request}"),
}
"""All that a driver's API answers without the token; whatever else it has needs it."""

API_SERVER = "https://kubernetes.default.svc/api/v1/namespaces"


@pytest.fixture(scope="module")
def elsewhere(operator):
    """Another tenant's namespace."""
    with tenant(operator.cluster, f"tenant-{int(time.time()) % 100_000}") as namespace:
        yield namespace


@pytest.fixture(scope="module")
def neighbour(job, elsewhere, bucket):
    """A job of the same name elsewhere; both run."""
    neighbour = AppliedJob(job.cluster, bucket, elsewhere, job.name)
    try:
        job.apply()
        job.until_stable()
        neighbour.apply(parallelism=1)
        neighbour.until_stable()
        yield neighbour
    finally:
        neighbour.delete()


@pytest.fixture
def account(operator):
    return Account(operator.cluster, operator.jobs, "weir-driver")


def driver_of(job):
    return Pod(job.cluster, job.namespace, job.driver())


def executor_of(job):
    return Pod(job.cluster, job.namespace, names(job.pods("executor"))[0])


def operator_pod(operator):
    return Pod(operator.cluster, NAMESPACE, operator.pod())


def keys_of(job):
    secret = job.cluster.look("secret", keys_name(job.name), namespace=job.namespace)
    return {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}


def secrets_named(tree):
    """The Secrets that a pod's specification names, wherever it can name one."""
    if isinstance(tree, list):
        return set().union(*map(secrets_named, tree))
    if not isinstance(tree, dict):
        return set()
    found = set().union(*map(secrets_named, tree.values()))
    found |= {tree[key]["name"] for key in ("secretKeyRef", "secretRef") if key in tree}
    found |= {tree["secretName"]} if "secretName" in tree else set()
    found |= {tree["secret"]["name"]} if "name" in (tree.get("secret") or {}) else set()
    return found | {secret["name"] for secret in tree.get("imagePullSecrets", ())}


def named_by(job, role):
    return set().union(*(secrets_named(pod["spec"]) for pod in job.pods(role)))


def routes():
    """Every method and path that a driver's API has, described or not."""
    found = iter_route_contexts(create_app(FakeJobView(), "a-token").routes)
    return sorted((method, route.path) for route in found for method in route.methods or {"GET"})


def answers(job, operator, token):
    """What each route says to the bearer of a token; who asks is the operator's pod."""
    driver = f"http://{driver_of(job).ip}:{API_PORT}"
    calls = [
        Call(driver + re.sub(r"{[^}]+}", "1", path), method, token) for method, path in routes()
    ]
    found = operator_pod(operator).calls(calls)
    return dict(zip(routes(), found, strict=True))


def chosen(cluster, selector, namespace):
    """The pods that a selector of a policy means."""
    assert set(selector) <= {"matchLabels", "matchExpressions"}, selector
    wanted = [f"{label}={value}" for label, value in selector.get("matchLabels", {}).items()]
    for wish in selector.get("matchExpressions", ()):
        assert wish["operator"] == "Exists", wish
        wanted.append(wish["key"])
    return set(names(cluster.items("pods", "-l", ",".join(wanted), namespace=namespace)))


def test_a_drivers_account_may_do_what_spark_must_and_nothing_else(account):
    """K9: in its own namespace."""
    assert account.everything(account.namespace) == AS_DRIVER | AS_ANYBODY


def test_a_drivers_account_may_do_nothing_in_another_namespace(account, elsewhere):
    """K9."""
    assert account.everything(elsewhere) == AS_ANYBODY


@pytest.mark.parametrize("deed", NEVER)
def test_a_drivers_account_is_not_allowed_to(account, elsewhere, deed):
    """K9: at home or elsewhere; one thing that it is allowed shows that the question is right."""
    assert account.may("create pods", account.namespace)
    assert not account.may(deed, account.namespace)
    assert not account.may(deed, elsewhere)


def test_the_operator_reads_no_lists_of_secrets_and_runs_nothing_in_pods(operator, elsewhere):
    """K9: the keys of a job and its ca.crt it gets by their names."""
    account = Account(operator.cluster, NAMESPACE, "weir-operator")

    assert account.may("get secrets", elsewhere)
    assert not account.may("list secrets", elsewhere)
    assert not account.may("patch secrets", elsewhere)
    assert not account.may("create pods/exec", elsewhere)


def test_the_operator_has_a_policy_and_may_give_one_to_jobs_anywhere(operator, elsewhere):
    """K9: and may not take one away."""
    account = Account(operator.cluster, NAMESPACE, "weir-operator")
    policies = "networkpolicies.networking.k8s.io"

    assert "weir-operator" in names(operator.cluster.items("networkpolicies", namespace=NAMESPACE))
    assert account.may(f"create {policies}", elsewhere)
    assert not account.may(f"list {policies}", elsewhere)
    assert not account.may(f"delete {policies}", elsewhere)


@pytest.mark.thorough
def test_from_inside_a_driver_no_secret_can_be_read_and_nothing_of_another_namespace(
    job, neighbour
):
    """K9 X4: with the token that its pod has, which is good for its own pods."""
    keys = keys_name(job.name)
    home, away = (f"{API_SERVER}/{each.namespace}" for each in (job, neighbour))
    refused = (
        f"{away}/secrets/{keys}",
        f"{away}/secrets",
        f"{away}/pods",
        f"{home}/secrets/{keys}",
    )
    assert keys_of(neighbour), "there is something to be read"

    of_pods, *others = driver_of(job).calls(
        [Call(url, as_account=True) for url in (f"{home}/pods", *refused)]
    )

    assert of_pods.status == 200, of_pods
    assert {answer.status for answer in others} == {403}, dict(zip(refused, others, strict=True))


@pytest.mark.thorough
def test_an_executor_has_no_account_at_all(job, neighbour):
    """K9: only drivers start pods."""
    assert neighbour
    answer = executor_of(job).call(Call(f"{API_SERVER}/{job.namespace}/pods", as_account=True))

    assert answer.why.startswith("FileNotFoundError"), answer


@pytest.mark.thorough
@pytest.mark.parametrize("whose", ["no token", "a wrong one", "another job's"])
def test_without_its_token_a_job_cannot_be_changed_nor_its_report_be_read(
    job, neighbour, operator, whose
):
    """X1: every endpoint of its API, except the public ones."""
    tokens = {"no token": "", "a wrong one": "wrong", "another job's": keys_of(neighbour)["token"]}

    found = answers(job, operator, tokens[whose])

    refused = {route for route, answer in found.items() if answer.status == 401}
    assert refused == set(found) - OPEN, found
    assert {method for method, _ in OPEN} <= {"GET", "HEAD"}, "reading changes nothing"
    assert found["GET", "/healthz"].status == 200


@pytest.mark.thorough
def test_with_its_own_token_it_is_heard_and_nothing_has_happened_to_it(job, neighbour, operator):
    """X1: what was refused before was refused for the token, and was not done."""
    assert neighbour
    url = f"http://{driver_of(job).ip}:{API_PORT}/v1/job/report"

    assert operator_pod(operator).call(Call(url, token=keys_of(job)["token"])).status == 200
    assert not job.snapshots()
    job.until_stable()
    job.until_committed()


@pytest.mark.thorough
def test_the_keys_of_a_job_are_named_by_its_driver_alone(job, neighbour):
    """X1 X4: and are not those of its namesake."""
    for each in (job, neighbour):
        assert named_by(each, "driver") == {"s3", keys_name(each.name)}
        assert named_by(each, "executor") == {"s3"}
    assert not set(keys_of(job).values()) & set(keys_of(neighbour).values())


@pytest.mark.thorough
def test_the_keys_of_a_job_are_nowhere_to_be_read(job, neighbour, operator, cluster):
    """X4: neither in a log nor in any object but their Secret."""
    assert neighbour
    event_messages = [
        cluster.kubectl("logs", job.driver(), namespace=job.namespace),
        cluster.kubectl("logs", operator.pod(), namespace=NAMESPACE),
        json.dumps(job.resource()),
        cluster.kubectl("get", "events,configmaps,pods", "-o", "json", namespace=job.namespace),
    ]

    assert not [
        name for name, key in keys_of(job).items() if any(key in text for text in event_messages)
    ]


@pytest.mark.thorough
def test_policies_mean_the_pods_that_there_are(job, neighbour, operator, cluster):
    """K9: a label that no pod has would silently protect nothing."""
    for each in (job, neighbour):
        policy = network_policy_name(each.name)
        spec = cluster.look("networkpolicy", policy, namespace=each.namespace)["spec"]
        pods = {*names(each.pods("driver")), *names(each.pods("executor"))}
        of_the_job, of_the_operator = spec["ingress"]
        assert pods == chosen(cluster, spec["podSelector"], each.namespace)
        assert of_the_job == {"from": [{"podSelector": spec["podSelector"]}]}
        assert [port["port"] for port in of_the_operator["ports"]] == [API_PORT]
        (peer,) = of_the_operator["from"]
        assert peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] == NAMESPACE
        assert operator.pod() in chosen(cluster, peer["podSelector"], NAMESPACE)


@pytest.mark.thorough
def test_whether_the_network_keeps_tenants_apart_is_said(job, neighbour, operator):
    """K9: the operator reaches a driver in any case; a job of another namespace had better not."""
    health = Call(f"http://{driver_of(job).ip}:{API_PORT}/healthz")

    assert operator_pod(operator).call(health).status == 200
    is_open = driver_of(neighbour).call(health).status == 200
    verdict = "does not enforce it" if is_open else "enforces it"
    show(f"NetworkPolicy is applied; this network {verdict}")
