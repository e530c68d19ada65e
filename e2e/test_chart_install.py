"""The chart installs the operator with the given values, and rejects invalid values at once.

The rendered text is verified first; then the chart is installed into a separate namespace, so that
it does not interfere with another operator of the cluster.
"""

import time

import pytest
import yaml

from chart import NAMESPACE, Helm
from cluster import ROOT, CommandFailed
from wait_until import until

PLAIN = "crds.install=false"
"""``kubectl apply -f crds`` brings the definitions where there is no Helm."""

TIMEOUT_S, POLL_S = 120.0, 0.5
DEFINITIONS = ("checkpointedjobs.weir.dev", "checkpointedjobsnapshots.weir.dev")

JOB = """
apiVersion: weir.dev/v1alpha1
kind: CheckpointedJob
metadata: {name: asleep}
spec:
  image: localhost/weir:dev
  suspend: true
  job: {file: /opt/job/job.py}
  checkpointing: {interval: 10 s, storage: s3://weir/asleep}
"""


@pytest.fixture
def helm(cluster):
    return Helm(cluster)


@pytest.fixture
def alone(helm, cluster):
    """A namespace with an operator that sees nothing else; jobs go while it is there to let go."""
    namespace = f"chart-{int(time.time()) % 100_000}"
    only = (f"watchNamespaces={{{namespace}}}", "clusterFacts=false")
    try:
        with helm.installed(namespace, *only):
            yield namespace
            cluster.kubectl("delete", "checkpointedjobs", "--all", namespace=namespace)
    finally:
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def kinds(objects):
    return {found["kind"] for found in objects}


def refusal(helm, *values):
    with pytest.raises(CommandFailed) as refused:
        helm.rendered(*values)
    return str(refused.value)


def test_the_chart_is_sound(helm):
    """K11."""
    helm.lint()


def test_the_plain_manifests_are_the_chart_rendered(helm):
    """K11: the command below, with its output in the file, brings them into step."""
    plain = (ROOT / "manifests" / "install.yaml").read_text()

    command = f"helm template weir helm/weir --kube-version 1.29 -n {NAMESPACE} --set {PLAIN}"
    assert plain == helm.rendered(PLAIN), command


def test_the_definitions_come_with_the_chart_and_stay_when_it_goes(helm):
    """K11: word for word as in crds/, and one annotation."""
    found = {d["metadata"]["name"]: d for d in helm.objects() if "Definition" in d["kind"]}

    for name in DEFINITIONS:
        kept = yaml.safe_load((ROOT / "crds" / f"{name}.yaml").read_text())
        kept["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
        assert found.pop(name) == kept
    assert not found


@pytest.mark.parametrize("value", ["replica=2", "replicas=many", "image.tga=1", "metrics.port=0"])
def test_what_cannot_be_chosen_is_refused(helm, value):
    """K11 U3."""
    said = refusal(helm, value)

    assert "schema" in said
    assert value.partition("=")[0].rpartition(".")[2] in said


def test_an_operator_of_some_namespaces_needs_no_role_of_the_cluster(helm):
    """K9."""
    objects = helm.objects(PLAIN, "watchNamespaces={a,b}", "clusterFacts=false")
    roles = [found for found in objects if found["kind"] == "Role"]

    assert not any(kind.startswith("Cluster") for kind in kinds(objects))
    assert {"a", "b"} <= {role["metadata"]["namespace"] for role in roles}


def test_jobs_get_an_account_only_where_somebody_looks_after_them(helm):
    """K9 U3."""
    said = refusal(helm, "watchNamespaces={a}", "jobNamespaces={b}")

    assert "the operator does not watch b" in said


def test_several_operators_do_not_leave_at_once(helm):
    """K9."""
    assert "PodDisruptionBudget" in kinds(helm.objects(PLAIN, "replicas=2"))
    assert "PodDisruptionBudget" not in kinds(helm.objects(PLAIN))


def test_a_pod_monitor_that_no_peer_may_scrape_is_refused(helm):
    """K9 U3: a PodMonitor behind a policy that allows no traffic."""
    monitored = "metrics.podMonitor.enabled=true"
    prometheus = "networkPolicy.from[0].namespaceSelector.matchLabels.name=monitoring"

    assert "add your Prometheus" in refusal(helm, monitored)
    assert "PodMonitor" in kinds(helm.objects(PLAIN, monitored, prometheus))


def test_an_installed_operator_works_with_the_permissions_it_has(alone, cluster):
    """K9 K11: it says what has become of a job, which takes its Lease, its watches and a write."""
    cluster.kubectl("apply", "-f", "-", given=JOB, namespace=alone)

    until(
        "a status of the job",
        lambda: cluster.look("checkpointedjob", "asleep", namespace=alone).get("status"),
        lambda: cluster.kubectl("logs", "deployment/weir-operator", namespace=alone),
        TIMEOUT_S,
        POLL_S,
    )


def test_uninstalling_leaves_the_definitions(alone, helm, cluster):
    """K11: and so every job with its status."""
    helm.uninstall(alone)

    left = cluster.kubectl("get", "customresourcedefinitions", "-o", "name")

    assert all(name in left for name in DEFINITIONS)
