"""The driver's pod is what the specification and the attempt say."""

import pytest

from sample_driver import LAST_STATE, OWNER, a_driver, an_attempt, mounts, named, variables
from weir.api.recovery_config import ClaimMode
from weir_operator.manifests import driver_pod
from weir_operator.manifests.security_context import SCRATCH
from weir_operator.resource.pod_settings import OWN_VARIABLES
from weir_operator.resource.status_fields import RestorePoint, RestoreType

SAVEPOINT = "s3://bucket/savepoints/savepoint-1"
COPIES = {
    "state": {"localRecovery": True},
    "localRecoveryVolume": "copies",
    "executor": {"volumes": [{"name": "copies", "hostPath": {"path": "/var/lib/weir"}}]},
}


def main_container(pod):
    return named(pod["spec"]["containers"], "driver")


def driver_environment(**above):
    return variables(main_container(a_driver(**above)))


def point(kind, **more):
    recorded = LAST_STATE.recorded_at
    return RestorePoint(type=kind, deployment=3, recorded_at=recorded, **more)


def test_it_belongs_to_its_resource_from_the_beginning():
    """K2 K10: so that nothing is left when the resource goes."""
    (owner,) = a_driver()["metadata"]["ownerReferences"]

    assert (owner["kind"], owner["name"], owner["uid"]) == ("CheckpointedJob", "orders", OWNER.uid)
    assert owner["controller"]
    assert owner["blockOwnerDeletion"]


def test_only_the_operator_restarts_the_driver():
    """K3: a pod that starts again by itself would be a second attempt of the same number."""
    assert a_driver()["spec"]["restartPolicy"] == "Never"


def test_its_labels_say_whose_it_is_and_which_attempt():
    """K2."""
    pod = a_driver()

    assert pod["metadata"]["name"] == "orders-driver-7"
    assert pod["metadata"]["namespace"] == "shop"
    assert pod["metadata"]["labels"].items() >= {
        ("weir.dev/job", "orders"),
        ("weir.dev/role", "driver"),
        ("weir.dev/attempt", "7"),
    }


def test_the_same_order_makes_the_same_pod():
    """K3: made again after a crash, it is the one that is there."""
    assert driver_pod(OWNER, an_attempt()) == driver_pod(OWNER, an_attempt())


@pytest.mark.parametrize(
    ("job", "main"),
    [
        ({"file": "/opt/job/job.py"}, "/opt/job/job.py"),
        ({"url": "s3://bucket/job.py"}, "s3://bucket/job.py"),
        ({"configMap": {"name": "programs", "key": "sums.py"}}, "/etc/job/sums.py"),
    ],
)
def test_it_drives_the_main_file(job, main):
    """K1: from the image, an object store or a ConfigMap."""
    pod = a_driver(job={"file": None, **job, "arguments": ["--rows", "5"]})

    command = ["python3", "-m", "weir.cli", "drive", main, "--rows", "5"]
    assert main_container(pod)["args"] == command


def test_a_program_in_a_config_map_is_mounted():
    """K1."""
    pod = a_driver(job={"file": None, "configMap": {"name": "programs", "key": "sums.py"}})

    assert mounts(pod, "driver")["/etc/job"]["configMap"] == {"name": "programs"}


def test_an_argument_reaches_the_program_as_it_was_written():
    """K1: Kubernetes would put a variable's value in its place."""
    pod = a_driver(job={"arguments": ["$(WEIR_TOKEN)"]})

    assert main_container(pod)["args"][-1] == "$$(WEIR_TOKEN)"


def test_every_variable_that_it_sets_is_refused_to_users():
    """K2: who the driver is, the operator says."""
    path = point(RestoreType.PATH, path=SAVEPOINT, claim_mode=ClaimMode.CLAIM)
    every = {
        **driver_environment(restore=path, local_recovery=True, **COPIES),
        **driver_environment(restore=point(RestoreType.NOTHING)),
        **driver_environment(restore=point(RestoreType.LAST_STATE, lowest_checkpoint=4)),
        **driver_environment(recovery={"allowNonRestoredState": True}),
    }

    assert set(every) - {"HOME"} == set(OWN_VARIABLES) - {"WEIR_PARALLELISM"}


def test_the_environment_names_job_attempt_and_deployment():
    """K3 C17: the deployment names the submission, the attempt its report."""
    variables = driver_environment()

    assert variables["WEIR_JOB"] == "orders-1f"
    assert variables["WEIR_ATTEMPT"] == "7"
    assert variables["WEIR_DEPLOYMENT"] == "orders-1f-3"


START = {"WEIR_FROM", "WEIR_CLAIM", "WEIR_LOWEST_CHECKPOINT", "WEIR_FRESH"}


@pytest.mark.parametrize(
    ("restore", "variables"),
    [
        (point(RestoreType.NOTHING), {"WEIR_FRESH": "true"}),
        (point(RestoreType.LAST_STATE), {}),
        (
            point(RestoreType.LAST_STATE, lowest_checkpoint=4),
            {"WEIR_LOWEST_CHECKPOINT": "4"},
        ),
        (point(RestoreType.PATH, path=SAVEPOINT), {"WEIR_FROM": SAVEPOINT}),
        (
            point(RestoreType.PATH, path=SAVEPOINT, claim_mode=ClaimMode.CLAIM),
            {"WEIR_FROM": SAVEPOINT, "WEIR_CLAIM": "true"},
        ),
    ],
)
def test_it_starts_from_the_recorded_restore_point(restore, variables):
    """K4: and from nothing else that the specification may say."""
    given = driver_environment(
        restore=restore, recovery={"path": "s3://bucket/first", "claimMode": "CLAIM"}
    )

    assert {name: given[name] for name in START & given.keys()} == variables


def test_a_path_that_a_driver_reported_is_not_expanded():
    """X3 X4: it could name the variable of a secret."""
    path = "s3://bucket/$(AWS_SECRET_ACCESS_KEY)"

    assert driver_environment(restore=point(RestoreType.PATH, path=path))[
        "WEIR_FROM"
    ] == path.replace("$", "$$")


def test_keys_arrive_by_reference():
    """X1 X4: no value of a Secret stands in a pod."""
    env = main_container(a_driver())["env"]

    for name, key in (("WEIR_TOKEN", "token"), ("WEIR_SECRET", "secret")):
        assert named(env, name)["valueFrom"] == {
            "secretKeyRef": {"name": "orders-keys", "key": key}
        }


def test_keys_of_the_storage_are_named_not_read():
    """X4."""
    pod = a_driver(storageSecrets=["s3", "mail"])

    assert main_container(pod)["envFrom"] == [
        {"secretRef": {"name": "s3"}},
        {"secretRef": {"name": "mail"}},
    ]


def test_local_copies_lie_where_the_user_has_mounted_the_volume():
    """K8 S13."""
    mounted = {**COPIES["executor"], "volumeMounts": [{"name": "copies", "mountPath": "/mnt/c"}]}

    assert (
        driver_environment(local_recovery=True, **COPIES | {"executor": mounted})["WEIR_LOCAL_DIR"]
        == "/mnt/c"
    )


def test_no_local_copies_are_kept_on_a_volume_that_would_not_last():
    """K8."""
    assert "WEIR_LOCAL_DIR" not in driver_environment(local_recovery=False, **COPIES)


def test_no_local_copies_are_kept_unasked():
    """K8."""
    volume = {name: COPIES[name] for name in ("localRecoveryVolume", "executor")}

    assert "WEIR_LOCAL_DIR" not in driver_environment(local_recovery=True, **volume)


def test_a_user_adds_what_a_pod_can_have():
    """K2: fields for what is common."""
    pod = a_driver(
        driver={
            "resources": {"requests": {"cpu": 2}, "limits": {"memory": "4Gi"}},
            "env": [{"name": "LEVEL", "value": "debug"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
    )

    assert main_container(pod)["resources"] == {
        "requests": {"cpu": "2"},
        "limits": {"memory": "4Gi"},
    }
    assert variables(main_container(pod))["LEVEL"] == "debug"
    assert mounts(pod, "driver")["/data"]["persistentVolumeClaim"] == {"claimName": "data"}


def test_a_template_adds_the_rest():
    """K2: annotations, nodes, neighbours, a stricter security."""
    template = {
        "metadata": {"annotations": {"team": "shop"}, "labels": {"tier": "gold"}},
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "securityContext": {"runAsUser": 2000},
            "containers": [{"name": "logs", "image": "fluent"}],
        },
    }

    pod = a_driver(driver={"podTemplate": template})

    assert pod["metadata"]["annotations"] == {"team": "shop"}
    assert pod["metadata"]["labels"]["tier"] == "gold"
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert pod["spec"]["securityContext"]["runAsUser"] == 2000
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert named(pod["spec"]["containers"], "logs")["image"] == "fluent"


def test_a_template_does_not_take_what_the_operator_decides():
    """K2 K3: whose the pod is, and what its parts are."""
    template = {
        "metadata": {"labels": {"weir.dev/job": "other", "weir.dev/role": "executor"}},
        "spec": {"volumes": [{"name": "weir-config", "emptyDir": {}}]},
    }

    pod = a_driver(driver={"podTemplate": template})

    assert pod["metadata"]["labels"]["weir.dev/job"] == "orders"
    assert pod["metadata"]["labels"]["weir.dev/role"] == "driver"
    assert mounts(pod, "driver")["/etc/weir"]["configMap"] == {"name": "orders-config-7"}


def test_it_may_do_no_more_than_it_must():
    """K9: what the level restricted of Pod Security asks, and a root that is not written to."""
    pod = a_driver()

    assert pod["spec"]["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert main_container(pod)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert mounts(pod, "driver")[SCRATCH]["emptyDir"] == {}
    assert driver_environment()["HOME"] == SCRATCH


def test_the_kubelet_does_not_end_a_start_before_its_deadline():
    """K7: the operator ends it, and says why."""
    probe = main_container(a_driver(startDeadlines={"driver": "10 min"}))["startupProbe"]

    assert probe["periodSeconds"] * probe["failureThreshold"] > 600


@pytest.mark.parametrize(("tls", "scheme"), [({}, "HTTP"), ({"tlsSecret": "orders-tls"}, "HTTPS")])
def test_probes_speak_as_the_driver_does(tls, scheme):
    """X1: with a certificate it answers in TLS only."""
    container = main_container(a_driver(**tls))

    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": 8081, "scheme": scheme}


def test_certificates_are_mounted():
    """X1."""
    pod = a_driver(tlsSecret="orders-tls")

    assert mounts(pod, "driver")["/etc/weir-tls"]["secret"] == {"secretName": "orders-tls"}
