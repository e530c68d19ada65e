"""A look at a job writes down what it decided, then does it, and may be repeated at any moment."""

import asyncio
from datetime import timedelta

import pytest

from reconciled_job import BEGINNING, KEY, NAMESPACE, NODE, UNREACHABLE, ReconciledJob
from weir.api.report import JobPhase, JobReport
from weir.errors import Unavailable
from weir_operator.cluster.api_paths import CONFIG_MAPS, JOBS, NODES, PODS, SERVICES, NamespacedName
from weir_operator.cluster.api_requests import ApiRejected, ApiResponse
from weir_operator.cluster.observation import parse_node
from weir_operator.cluster.resource_object import FINALIZER, ResourceObject
from weir_operator.cluster.resync import resync
from weir_operator.controller.job_reconciler import (
    FULL_READ_PERIOD,
    LIVE_READ_WHEN_TERMINATING,
    LIVE_READ_WHEN_UNREACHABLE,
)
from weir_operator.controller.work_queue import Done, Requeue
from weir_operator.plan.job_deletion import POD_TERMINATION_TIMEOUT_MS
from weir_operator.plan.observed_state import DriverReport
from weir_operator.plan.stuck_drivers import TERMINATED_DEADLINE_MS
from weir_operator.resource.status import LifecycleState

STATUS = f"{JOBS.object_path(KEY)}/status"


def test_the_status_stands_before_anything_is_made():
    """K3: intent before effect, and the finalizer before both."""
    job = ReconciledJob()

    job.reconcile()

    first, second, *effects = job.api.made()
    assert first == ("PATCH", JOBS.object_path(KEY))
    assert second == ("PUT", STATUS)
    assert {path.rpartition("/")[2] for _, path in effects} == {
        "secrets",
        "services",
        "configmaps",
        "poddisruptionbudgets",
        "networkpolicies",
        "pods",
    }
    assert job.status.driver.pod_name == "orders-driver-1"


def test_what_is_made_belongs_to_the_resource():
    """K2: ownership is set at creation."""
    job = ReconciledJob()

    job.reconcile()

    (owner,) = job.pod()["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == ("uid-1", True)


@pytest.mark.parametrize("write", range(1, 8))
def test_a_crash_before_any_call_repeats_and_never_doubles(write):
    """K3: the next operator creates the rest and adopts what exists."""
    job = ReconciledJob()
    job.api.before = lambda _: _crash_at(job.api, write)
    with pytest.raises(Crashed):
        job.reconcile()

    job.api.before = lambda _: None
    job.reconcile()

    assert job.api.names("pods") == ["orders-driver-1"]
    assert job.api.names("secrets") == ["orders-keys"]
    assert job.status.driver.attempt == 1


def test_an_effect_that_is_repeated_stands_in_the_status_before_it_too():
    """K3: the write is a lock, even if it says nothing new."""
    job = ReconciledJob().is_running()
    job.driver_ends(1)
    job.api.before = _crash_before_deletion
    with pytest.raises(Crashed):
        job.reconcile()
    before = job.status
    job.api.before = lambda _: None
    job.api.calls.clear()

    job.resync_cache()
    asyncio.run(job.jobs.reconcile(KEY))

    first, second, *_ = [write for write in job.api.made() if "/events" not in write[1]]
    assert first == ("PUT", STATUS)
    assert second[0] == "DELETE"
    assert before.intent.action == "DeleteDriver"


def _crash_before_deletion(request):
    if request.method == "DELETE":
        raise Crashed


class Crashed(Exception):
    """The operator died here."""


def _crash_at(api, write):
    if len(api.made()) >= write:
        raise Crashed


def test_a_job_that_runs_needs_no_call_but_its_drivers():
    """K9: a look at rest costs the API server nothing."""
    job = ReconciledJob().is_running()
    asyncio.run(job.jobs.reconcile(KEY))
    job.api.calls.clear()

    reconciled = asyncio.run(job.jobs.reconcile(KEY))

    assert job.api.calls == []
    assert reconciled == Requeue(job.status.driver.running_since.replace(second=30))


def test_a_driver_that_is_listened_to_is_not_asked_by_looks():
    """K9: until its pod has ended, whose last words count then."""
    job = ReconciledJob().is_running()
    job.driver.version = "v1"

    async def reconciler():
        await job.jobs.reconcile(KEY)
        job.driver.endpoints.clear()
        await job.jobs.reconcile(KEY)
        assert job.driver.endpoints == []
        job.driver_ends(1)
        await resync(job.api, job.cache, (None,))
        await job.jobs.reconcile(KEY)

    asyncio.run(reconciler())

    assert "ended with code 1" in job.status.last_failure.message


def test_a_job_on_a_silent_node_is_looked_at_when_that_counts_as_lost():
    """K10: even if it is to be looked at much later otherwise."""
    job = ReconciledJob().is_running()
    silent = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2025-12-31T23:59:30Z"}
    node = {"metadata": {"name": NODE}, "status": {"conditions": [silent]}}
    job.cache.nodes[NODE] = parse_node(node)

    assert asyncio.run(job.jobs.reconcile(KEY)) == Requeue(BEGINNING.replace(second=10))


def test_somebody_elses_write_makes_the_look_decide_anew():
    """K3: a decision on an old copy does nothing."""
    job = ReconciledJob()
    job.reconcile()
    job.resync_cache()

    def edit(request):
        if request.path == STATUS:
            job.api.before = lambda _: None
            job.api.put(
                JOBS.object_path(KEY), {**job.job, "spec": {**job.job["spec"], "suspend": True}}
            )
            job.job["metadata"]["generation"] = 2

    job.api.before = edit
    job.driver_ends(1)
    job.reconcile()

    assert job.status.observed_generation == 2


def test_a_pod_of_the_same_name_that_is_not_ours_is_left_alone():
    """K2: a foreign object is reported, not adopted."""
    job = ReconciledJob()
    stranger = {"metadata": {"name": "orders", "namespace": NAMESPACE}, "spec": {}}
    job.api.put(SERVICES.object_path(NamespacedName(NAMESPACE, "orders")), stranger)

    with pytest.raises(ApiRejected, match="does not belong to orders"):
        job.reconcile()

    assert job.api.names("events")


def test_what_the_api_server_forbids_is_the_last_failure_of_the_job():
    """K7: the missing permission is named where the job's owner looks."""
    job = ReconciledJob()
    job.api.forbidden.add(("create", "pods"))
    for _ in range(2):
        with pytest.raises(ApiRejected):
            job.reconcile()

    assert job.status.last_failure.reason == "Forbidden"
    assert "allow the operator to create pods" in job.status.last_failure.message

    job.api.forbidden.clear()
    job.reconcile()
    assert job.api.names("pods") == ["orders-driver-1"]


QUOTA = 'pods "orders-driver-1" is forbidden: exceeded quota: small, requested: pods=1'


@pytest.mark.parametrize(
    ("code", "said", "reason", "remedy"),
    [
        (403, "no rule allows it", "Forbidden", "allow the operator to create pods"),
        (403, QUOTA, "Forbidden", "change the quota or policy that the message names"),
        (422, "spec.hostname: Invalid value", "ApiServerRefused", "change the fields of the"),
        (
            400,
            "webhook denied it " + "x" * 2_000,
            "ApiServerRefused",
            "change the fields of the specification that the message names",
        ),
    ],
)
def test_a_job_is_degraded_for_as_long_as_the_api_server_refuses_what_it_needs(
    code, said, reason, remedy
):
    """K7: with the thing, the cause and the remedy; and no longer."""
    job = ReconciledJob()
    job.api.refused["create", "pods"] = ApiResponse(code, {"message": said})
    for _ in range(3):
        with pytest.raises(ApiRejected):
            job.reconcile()
    degraded = condition(job, "Degraded")
    assert (degraded.status, degraded.reason) == ("True", reason)
    assert said[:60] in degraded.message
    assert remedy in degraded.message

    job.api.refused.clear()
    job.reconcile()

    assert condition(job, "Degraded").status == "False"
    assert job.status.driver.attempt == 1


def test_a_refusal_that_lasts_is_one_refusal_and_repeats_no_other_news():
    """K7: the driver has ended once, however often its pod cannot be deleted."""
    job = ReconciledJob().is_running()
    job.driver_ends(1)
    job.api.forbidden.add(("delete", "pods"))
    for _ in range(6):
        with pytest.raises(ApiRejected):
            job.reconcile()
        job.time += timedelta(minutes=1)

    reported = [body for path, body in job.api.objects.items() if "/events/" in path]
    assert [body["count"] for body in reported if body["reason"] == "DriverExited"] == [1]
    assert condition(job, "Degraded").reason == "Forbidden"


def test_an_object_that_the_operator_may_not_read_is_reported():
    """K7: no plan can be made of it, so there is an Event and nothing else."""
    job = ReconciledJob()
    job.api.forbidden.add(("list", "pods"))

    with pytest.raises(ApiRejected):
        asyncio.run(_looked_live(job))

    reported = [job.api.objects[path]["message"] for path in job.api.objects if "/events/" in path]
    assert any("allow the operator to list pods" in message for message in reported)


async def _looked_live(job):
    job.cache.put_job(ResourceObject(job.job))
    await job.jobs.reconcile(KEY)


def test_a_deletion_that_the_api_server_refuses_to_tidy_up_ends_all_the_same():
    """K10: when its time is up, and Kubernetes deletes what belonged to it."""
    job = ReconciledJob().is_running()
    job.driver.answer = lambda _: UNREACHABLE
    job.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    job.api.put(JOBS.object_path(KEY), job.job)
    job.api.forbidden.add(("delete", "pods"))
    with pytest.raises(ApiRejected):
        job.reconcile()

    job.time += timedelta(milliseconds=POD_TERMINATION_TIMEOUT_MS)
    job.reconcile()

    assert JOBS.object_path(KEY) not in job.api.objects


def condition(job, kind):
    return next(one for one in job.status.conditions if one.type == kind)


def test_an_api_server_that_is_away_is_an_outage_not_a_verdict():
    """K3: nothing is decided on what could not be read."""
    job = ReconciledJob().is_running()
    job.resync_cache()
    del job.api.objects[PODS.object_path(NamespacedName(NAMESPACE, "orders-driver-1"))]
    job.resync_cache()
    job.api.is_away = True

    with pytest.raises(Unavailable):
        asyncio.run(job.jobs.reconcile(KEY))

    assert job.status.driver.attempt == 1


def test_a_lost_driver_is_looked_for_live_before_it_is_replaced():
    """K3: a cache never proves an absence."""
    job = ReconciledJob().is_running()
    path = PODS.object_path(NamespacedName(NAMESPACE, "orders-driver-1"))
    kept = job.api.objects[path]
    job.cache.pods.clear()

    asyncio.run(job.jobs.reconcile(KEY))
    assert job.status.driver.attempt == 1

    del job.api.objects[path]
    job.reconcile()
    assert kept["metadata"]["name"] not in job.api.names("pods")
    assert job.status.driver.attempt == 2


def test_a_driver_that_fell_silent_is_looked_for_live():
    """K10: a watch may have missed that it is gone."""
    job = ReconciledJob().is_running()
    del job.api.objects[PODS.object_path(NamespacedName(NAMESPACE, "orders-driver-1"))]
    job.driver.answer = lambda _: UNREACHABLE
    job.time += LIVE_READ_WHEN_UNREACHABLE

    asyncio.run(job.jobs.reconcile(KEY))

    assert job.status.driver.attempt == 2


def test_a_driver_that_leaves_for_long_is_looked_for_live():
    """K10: a watch may have missed that it is gone."""
    job = ReconciledJob().is_running()
    job.pod()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    job.api.put(PODS.object_path(NamespacedName(NAMESPACE, "orders-driver-1")), job.pod())
    job.reconcile()
    del job.api.objects[PODS.object_path(NamespacedName(NAMESPACE, "orders-driver-1"))]
    job.time += LIVE_READ_WHEN_TERMINATING

    asyncio.run(job.jobs.reconcile(KEY))

    assert job.status.driver.attempt == 2


def test_a_driver_that_a_finalizer_holds_is_not_waited_for_for_ever():
    """K3 K10: its successor has another name, and the pod is left to the owner of its finalizer."""
    job = ReconciledJob().is_running()
    job.driver_ends(143)
    held = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/hold"]}
    job.pod()["metadata"] |= held
    job.reconcile()
    assert job.api.names("pods") == ["orders-driver-1"]

    job.time += timedelta(milliseconds=TERMINATED_DEADLINE_MS)
    job.reconcile()

    assert job.api.names("pods") == ["orders-driver-1", "orders-driver-2"]
    assert job.pod()["metadata"]["finalizers"] == ["example.com/hold"]
    degraded = condition(job, "Degraded")
    assert degraded.reason == "DriverStuck"
    assert "orders-driver-1" in degraded.message
    assert "example.com/hold" in degraded.message


def test_a_driver_that_was_gone_when_it_was_deleted_is_not_waited_for():
    """K3 K10: the response to the deletion shows what no watch has reported."""
    job = ReconciledJob().is_running()
    job.driver_ends(1)
    job.resync_cache()
    del job.api.objects[PODS.object_path(NamespacedName(NAMESPACE, "orders-driver-1"))]

    asyncio.run(job.jobs.reconcile(KEY))
    asyncio.run(job.jobs.reconcile(KEY))

    assert job.status.driver.attempt == 2


def test_what_stands_beside_a_driver_is_made_again_when_it_is_gone():
    """K2: it is looked for now and then, not at every look."""
    job = ReconciledJob().is_running()
    del job.api.objects[SERVICES.object_path(NamespacedName(NAMESPACE, "orders"))]
    job.reconcile()
    assert job.api.names("services") == []

    job.time += FULL_READ_PERIOD
    job.reconcile()

    assert job.api.names("services") == ["orders"]


def test_the_configuration_of_an_attempt_that_is_over_is_deleted():
    """K2: a job that fails for years leaves no heap behind."""
    job = ReconciledJob().is_running()
    del job.api.objects[PODS.object_path(NamespacedName(NAMESPACE, "orders-driver-1"))]

    job.reconcile()

    assert job.api.names(CONFIG_MAPS.plural) == ["orders-config-2"]


def test_the_last_words_of_a_driver_are_heard():
    """X3: a job that was refused is not tried again."""
    job = ReconciledJob().is_running()
    words = JobReport(attempt=1, phase=JobPhase.FAILED, why="no such table", is_rejected=True)
    job.driver_ends(2, words.model_dump_json())

    job.reconcile()

    assert job.status.state is LifecycleState.FAILED
    assert "no such table" in job.status.last_failure.message


def test_pods_of_a_node_that_is_gone_are_deleted_by_force():
    """K10: no kubelet there will terminate them."""
    job = ReconciledJob().is_running()
    del job.api.objects[NODES.cluster_object_path("node-1")]
    job.cache.nodes.clear()

    job.reconcile()

    (deletion,) = [call for call in job.api.calls if call.verb == "delete"]
    assert deletion.body["gracePeriodSeconds"] == 0
    assert deletion.body["preconditions"] == {"uid": "uid-of-orders-driver-1"}


def test_without_the_right_to_see_nodes_none_is_lost():
    """K9: a namespaced operator waits for Kubernetes to end its pods."""
    job = ReconciledJob()
    job.api.forbidden.add(("get", "nodes"))
    job.is_running()

    assert job.status.state is LifecycleState.RUNNING
    assert not job.reader.can_read_nodes


def test_a_deleted_job_goes_when_its_driver_is_gone():
    """K10: the finalizer is ours alone to remove, and goes last."""
    job = ReconciledJob().is_running()
    job.driver.answer = lambda _: UNREACHABLE
    job.job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    job.api.put(JOBS.object_path(KEY), job.job)
    assert job.job["metadata"]["finalizers"] == [FINALIZER]

    job.reconcile()
    job.reconcile()

    assert JOBS.object_path(KEY) not in job.api.objects
    assert job.reconcile() == Done()


def test_a_status_of_another_release_leaves_the_job_alone():
    """K3: an operator that cannot read the status must not change anything."""
    job = ReconciledJob()
    job.reconcile()
    job.job["status"]["driver"]["attempt"] = "the third"
    job.api.put(JOBS.object_path(KEY), job.job)
    job.api.calls.clear()

    assert job.reconcile() == Requeue()

    assert [path for _, path in job.api.made() if "/events" not in path] == []


def test_a_driver_is_asked_with_the_token_of_its_job():
    """X1 X4: the token comes from the job's own Secret and shows itself nowhere."""
    job = ReconciledJob()
    job.reconcile()
    secret = job.api.objects[f"/api/v1/namespaces/{NAMESPACE}/secrets/orders-keys"]
    secret["data"] = {"token": "c2VjcmV0"}

    job.driver_runs()
    job.reconcile()

    endpoint = job.driver.endpoints[-1]
    assert (endpoint.url, endpoint.token) == ("http://10.0.0.7:8081/v1/job", "secret")
    assert "secret" not in repr(endpoint)


def test_an_order_reaches_the_driver_under_its_key():
    """K4: suspension asks for a savepoint and an end."""
    job = ReconciledJob(upgrade={"mode": "savepoint"}).is_running()
    job.job["spec"]["suspend"] = True
    job.job["metadata"]["generation"] = 2
    job.api.put(JOBS.object_path(KEY), job.job)

    job.reconcile()

    (request,) = job.driver.requests
    assert request.key == job.status.intent.request_id
    assert isinstance(job.driver.answer(job.driver.endpoints[-1]), DriverReport)
