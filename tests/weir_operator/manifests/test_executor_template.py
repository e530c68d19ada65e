"""Executors are made from a template that is the user's, hardened and spread over the nodes."""

import json

from sample_driver import a_config, mounts, named, variables
from weir_operator.manifests.security_context import SCRATCH

COPIES = {
    "state": {"localRecovery": True},
    "localRecoveryVolume": "copies",
    "executor": {"volumes": [{"name": "copies", "hostPath": {"path": "/var/lib/weir"}}]},
}


def template(**above):
    return json.loads(a_config(**above)["executor.yaml"])


def main_container(pod):
    return named(pod["spec"]["containers"], "executor")


def test_an_executor_has_no_token_of_the_api_server():
    """K9: only the driver starts pods."""
    assert template()["spec"]["automountServiceAccountToken"] is False


def test_an_executor_may_do_no_more_than_it_must():
    """K9."""
    pod = template()

    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert main_container(pod)["securityContext"]["readOnlyRootFilesystem"] is True
    assert mounts(pod, "executor")[SCRATCH]["emptyDir"] == {}


def test_executors_are_spread_over_the_nodes():
    """R3: a lost node takes as few of them with it as can be."""
    (constraint,) = template()["spec"]["topologySpreadConstraints"]

    assert constraint["topologyKey"] == "kubernetes.io/hostname"
    assert constraint["whenUnsatisfiable"] == "ScheduleAnyway"
    assert constraint["labelSelector"]["matchLabels"] == {
        "weir.dev/job": "orders",
        "weir.dev/role": "executor",
    }


def test_a_user_may_spread_them_otherwise():
    """K2: a template's list takes the place of ours."""
    zones = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    theirs = {"spec": {"topologySpreadConstraints": [zones]}}

    pod = template(executor={"podTemplate": theirs})

    assert pod["spec"]["topologySpreadConstraints"] == [zones]


def test_executors_have_the_keys_of_the_storage():
    """K2 X4: by the name of their Secret."""
    pod = template(storageSecrets=["s3"])

    assert main_container(pod)["envFrom"] == [{"secretRef": {"name": "s3"}}]


def test_cpu_and_memory_are_left_to_spark_and_the_rest_is_not():
    """K2: Spark sets them in the pod itself."""
    amounts = {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "10Gi"}

    pod = template(executor={"resources": {"requests": amounts, "limits": {"gpu.io/gpu": 1}}})

    assert main_container(pod)["resources"] == {
        "requests": {"ephemeral-storage": "10Gi"},
        "limits": {"gpu.io/gpu": "1"},
    }


def test_a_user_adds_what_a_pod_can_have():
    """K2: by fields and by a template."""
    pod = template(
        executor={
            "env": [{"name": "LEVEL", "value": "debug"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "podTemplate": {"spec": {"containers": [{"name": "logs", "image": "fluent"}]}},
        }
    )

    assert variables(main_container(pod))["LEVEL"] == "debug"
    assert mounts(pod, "executor")["/data"] == {"name": "data", "emptyDir": {}}
    assert named(pod["spec"]["containers"], "logs")["image"] == "fluent"


def test_the_settings_name_the_executor_container_of_the_template():
    """K2: it would take the first one, and a template may bring others."""
    settings = a_config()["spark-defaults.conf"]

    assert "spark.kubernetes.executor.podTemplateContainerName = executor\n" in settings


def test_the_volume_for_local_copies_is_mounted_if_the_user_has_not():
    """K8 S13."""
    pod = template(local_recovery=True, **COPIES)

    assert mounts(pod, "executor")["/var/lib/weir-local"]["hostPath"] == {"path": "/var/lib/weir"}


def test_a_volume_that_would_not_last_is_not_mounted_for_them():
    """K8."""
    assert "/var/lib/weir-local" not in mounts(template(local_recovery=False, **COPIES), "executor")


def test_certificates_are_mounted_at_executors_too():
    """X1: all that they say to each other is encrypted."""
    pod = template(tlsSecret="orders-tls")

    assert mounts(pod, "executor")["/etc/weir-tls"]["secret"] == {"secretName": "orders-tls"}
