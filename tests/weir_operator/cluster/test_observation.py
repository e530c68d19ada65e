"""Pods, nodes and volumes of Kubernetes become the plan's values, doubts on the side of caution."""

from datetime import UTC, datetime, timedelta

import pytest

from weir_operator.cluster.observation import (
    MOST_FINALIZERS,
    MOST_NEEDS,
    OUT_OF_SERVICE,
    ContainerProblem,
    parse_disposal,
    parse_node,
    parse_pod,
    parse_volume,
    volume_kind,
)
from weir_operator.plan.local_recovery import EmptyDir, EphemeralClaim, HostPath, OtherVolume
from weir_operator.plan.observed_state import Disposal, Running, Terminated, Terminating, Waiting

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE = timedelta(seconds=40)


def a_pod(status=None, role="driver", spec=None, **metadata):
    labels = {"weir.dev/job": "orders", "weir.dev/role": role, "weir.dev/attempt": "3"}
    owner = {"uid": "uid-1", "name": "orders", "controller": True}
    known = {"name": "p", "namespace": "shop", "uid": "u", "resourceVersion": "1"}
    more = {"labels": labels, "ownerReferences": [owner]} | metadata
    return parse_pod({"metadata": known | more, "spec": spec or {}, "status": status or {}})


def container(name="driver", **state):
    return {"containerStatuses": [{"name": name, "state": state}]}


@pytest.mark.parametrize(
    ("status", "stage"),
    [
        ({}, Waiting()),
        (container(running={}), Running()),
        (container("sidecar", running={}), Waiting()),
        (container(waiting={"reason": "ImagePullBackOff"}), Waiting("ImagePullBackOff")),
        (
            {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available",
                    }
                ]
            },
            Waiting("Unschedulable", "0/3 nodes are available"),
        ),
        (
            container(waiting={"reason": "CreateContainerConfigError", "message": "no Secret s3"}),
            Waiting("CreateContainerConfigError", "no Secret s3"),
        ),
        (
            container(terminated={"exitCode": 137, "reason": "OOMKilled"}),
            Terminated(137, "OOMKilled"),
        ),
        ({"phase": "Failed", "reason": "Evicted"}, Terminated(1, "Evicted")),
        (
            {
                "reason": "NodeShutdown",
                **container(terminated={"exitCode": 143, "reason": "Error"}),
            },
            Terminated(143, "NodeShutdown"),
        ),
    ],
)
def test_how_far_a_driver_is(status, stage):
    """K7: the pod's own reason counts before its container's."""
    assert a_pod(status).stage == stage


def test_a_pod_knows_its_owner_not_only_its_labels():
    """K2: any user can write labels."""
    assert a_pod().owner_uid == "uid-1"
    assert a_pod(ownerReferences=[{"uid": "x", "controller": False}]).owner_uid == ""
    assert a_pod(labels={"app": "other"}) is None


NEEDY = {
    "volumes": [
        {"name": "tls", "secret": {"secretName": "our-tls"}},
        {"name": "maybe", "secret": {"secretName": "not-needed", "optional": True}},
        {"name": "program", "configMap": {"name": "program"}},
        {"name": "scratch", "emptyDir": {}},
    ],
    "initContainers": [{"name": "first", "envFrom": [{"configMapRef": {"name": "first"}}]}],
    "containers": [
        {
            "name": "driver",
            "env": [
                {"name": "A", "value": "plain"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "b"}}},
                {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            ],
            "envFrom": [{"secretRef": {"name": "s3"}}],
        }
    ],
}


def test_a_driver_says_what_it_cannot_start_without():
    """K7: Secrets and ConfigMaps, mounted or read; those of executors are ignored."""
    assert a_pod(spec=NEEDY).needs == {
        ("Secret", "our-tls"),
        ("Secret", "keys"),
        ("Secret", "s3"),
        ("ConfigMap", "program"),
        ("ConfigMap", "first"),
    }
    assert a_pod(spec=NEEDY, role="executor").needs == frozenset()


def test_an_executor_in_trouble_says_why():
    """K7: one word, and what Kubernetes said."""
    waiting = {"reason": "ErrImagePull", "message": "not found"}
    pod = a_pod(container("executor", waiting=waiting), role="executor")
    assert pod.problem == ContainerProblem("ErrImagePull", "not found")


def a_node(status="True", since="2026-01-01T00:00:00Z", taints=()):
    ready = {"type": "Ready", "status": status, "lastTransitionTime": since}
    return parse_node(
        {
            "metadata": {"name": "n"},
            "spec": {"taints": [{"key": taint} for taint in taints]},
            "status": {"conditions": [ready]},
        }
    )


def test_a_node_is_lost_after_a_silence_or_by_a_persons_word():
    """K10: pods are deleted by force only on lost nodes."""
    assert not a_node().is_lost(NOW + PATIENCE, PATIENCE)
    assert not a_node("Unknown").is_lost(NOW + PATIENCE / 2, PATIENCE)
    assert a_node("Unknown").is_lost(NOW + PATIENCE, PATIENCE)
    assert a_node(taints=[OUT_OF_SERVICE]).is_lost(NOW, PATIENCE)


def test_a_node_of_which_nothing_is_known_lives():
    """K10: a doubt says no."""
    assert not parse_node({"metadata": {"name": "n"}}).is_lost(NOW + PATIENCE, PATIENCE)


@pytest.mark.parametrize(
    ("volume", "seen"),
    [
        ({"name": "v", "hostPath": {"path": "/data"}}, HostPath("v", "/data")),
        ({"name": "v", "emptyDir": {}}, EmptyDir("v")),
        ({"name": "v"}, EmptyDir("v")),
        ({"name": "v", "ephemeral": {}}, EphemeralClaim("v")),
        ({"name": "v", "nfs": {}}, OtherVolume("v", "nfs")),
        ({"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, "c"),
    ],
)
def test_what_a_volume_is(volume, seen):
    """K8: only a disk of the node keeps copies."""
    assert parse_volume(volume) == seen


def test_what_is_behind_a_claim():
    """K8: by the field of the PersistentVolume."""
    assert volume_kind({"spec": {"capacity": {}, "local": {"path": "/d"}}}) == "local"
    assert volume_kind({"spec": {"somethingNew": {}}}) == "unknown"


@pytest.mark.parametrize(
    ("condition", "seen"),
    [("Complete", Disposal.DONE), ("Failed", Disposal.FAILED), ("Suspended", Disposal.ACTIVE)],
)
def test_how_far_a_disposal_is(condition, seen):
    """K5: by the Job's own conditions."""
    status = {"conditions": [{"type": condition, "status": "True"}]}
    assert parse_disposal({"status": status}) is seen


@pytest.mark.parametrize(
    ("metadata", "terminating"),
    [
        ({}, None),
        ({"finalizers": ["example.com/hold"]}, None),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, Terminating(NOW)),
        (
            {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30},
            Terminating(NOW),
        ),
        (
            {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0},
            Terminating(NOW, is_forced=True),
        ),
        (
            {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/hold"]},
            Terminating(NOW, ("example.com/hold",)),
        ),
    ],
)
def test_a_terminating_pod_shows_its_deadline_and_its_finalizers(metadata, terminating):
    """K10."""
    assert a_pod(**metadata).terminating == terminating


def test_what_is_kept_of_a_pod_has_a_limit():
    """K9 X3: a user may write as much into a pod as fits."""
    variables = [
        {"name": f"V{n}", "valueFrom": {"secretKeyRef": {"name": f"s{n}", "key": "k"}}}
        for n in range(1_000)
    ]
    pod = a_pod(
        container(terminated={"exitCode": 1, "message": "x" * 100_000}),
        spec={"containers": [{"name": "driver", "env": variables}]},
        deletionTimestamp="2026-01-01T00:00:00Z",
        finalizers=[f"example.com/{n}" for n in range(1_000)],
    )

    assert len(pod.needs) == MOST_NEEDS
    assert len(pod.terminating.held_by) == MOST_FINALIZERS
    assert pod.termination_message == ""
