"""Watch events update the cache and enqueue resources; the operator's own writes do not."""

from dataclasses import dataclass, field

import kopf

from fake_api_server import FakeApiServer
from reconciled_job import KEY, a_job, a_snapshot
from weir_operator.cluster.api_paths import NamespacedName
from weir_operator.cluster.informer_cache import InformerCache
from weir_operator.cluster.resource_object import FINALIZER, ResourceObject
from weir_operator.controller.informers import Informers, kopf_registry, kopf_settings
from weir_operator.controller.watch_probe import WatchProbe


@dataclass
class FakeWorkQueue:
    """A work queue that only records."""

    enqueued: list[NamespacedName] = field(default_factory=list)

    def enqueue(self, key):
        self.enqueued.append(key)


class Watching:
    """Watches with two work queues."""

    def __init__(self):
        self.jobs, self.snapshots = FakeWorkQueue(), FakeWorkQueue()
        self.cache = InformerCache()
        probe = WatchProbe(FakeApiServer(), "weir-system")
        self.watches = Informers(self.cache, self.jobs, self.snapshots, probe)

    def shows_job(self, version, status=None, **metadata):
        body = a_job()
        body |= {} if status is None else {"status": status}
        body["metadata"] |= {"resourceVersion": str(version)} | metadata
        self.watches.job({"type": "MODIFIED", "object": body})

    def shows_pod_on(self, node):
        labels = {"weir.dev/job": KEY.name, "weir.dev/role": "driver"}
        metadata = {"name": "p", "namespace": KEY.namespace, "uid": "p", "labels": labels}
        body = {"metadata": metadata, "spec": {"nodeName": node}}
        self.watches.pod({"type": "ADDED", "object": body})

    def shows_node(self, name, ready):
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        body = {"metadata": {"name": name}, "status": {"conditions": [condition]}}
        self.watches.node({"type": "MODIFIED", "object": body})


def test_a_new_job_rings():
    """K1: apply starts it."""
    watching = Watching()
    watching.shows_job(1)
    assert watching.jobs.enqueued == [KEY]


def test_a_status_that_the_operator_wrote_enqueues_no_job():
    """K9: a thousand jobs do not wake themselves."""
    watching = Watching()
    watching.shows_job(1)
    written = {**a_job(), "status": {"state": "Starting"}}
    written["metadata"] = {**written["metadata"], "resourceVersion": "2"}
    watching.cache.put_job(ResourceObject(written))

    watching.shows_job(2, status={"state": "Starting"})

    assert watching.jobs.enqueued == [KEY]


def test_an_edit_an_annotation_and_a_deletion_ring():
    """K1 K5: whatever people do is news."""
    watching = Watching()
    watching.shows_job(1)
    watching.shows_job(2, generation=2)
    watching.shows_job(3, generation=2, annotations={"weir.dev/savepoint": "a"})
    watching.shows_job(4, generation=2, deletionTimestamp="2026-01-01T00:00:00Z")
    assert watching.jobs.enqueued == [KEY] * 4


def test_an_old_copy_never_replaces_a_newer_one():
    """K3: a late event does not turn back time."""
    watching = Watching()
    watching.shows_job(9, generation=2)
    watching.shows_job(8)
    assert watching.cache.jobs[KEY].to_object().generation == 2


def test_a_snapshot_hears_when_its_job_has_moved_on():
    """K5: what a job no longer starts from may go."""
    watching = Watching()
    _, snapshot = a_snapshot("before")
    snapshot["metadata"] |= {"uid": "s", "resourceVersion": "1"}
    watching.cache.put_snapshot(ResourceObject(snapshot))
    point = {"restorePoint": {"path": "s3://weir/savepoints/1"}}
    watching.shows_job(1, status=point)
    watching.snapshots.enqueued.clear()

    watching.shows_job(2, status={**point, "restarts": 1})
    assert watching.snapshots.enqueued == []

    watching.shows_job(3, status={})
    assert watching.snapshots.enqueued == [NamespacedName("shop", "before")]


def test_a_node_that_falls_silent_rings_for_the_jobs_on_it_and_one_that_lives_on_does_not():
    """K10: the pods of a lost node are replaced without waiting for a look that was due anyway."""
    watching = Watching()
    watching.shows_job(1)
    watching.shows_pod_on("node-1")
    watching.shows_node("node-1", "True")
    watching.jobs.enqueued.clear()

    watching.shows_node("node-1", "True")
    watching.shows_node("node-2", "Unknown")
    assert watching.jobs.enqueued == []

    watching.shows_node("node-1", "Unknown")
    assert watching.jobs.enqueued == [KEY]


def test_kopf_adds_no_finalizer_and_does_not_know_ours():
    """K10: it removes what bears its own name from objects that it has nothing to do for."""
    settings = kopf_settings()
    registry = kopf_registry(Watching().watches, None, watches_nodes=True)

    assert settings.persistence.finalizer != FINALIZER
    assert not settings.posting.enabled
    assert isinstance(registry, kopf.OperatorRegistry)


def test_a_job_whose_end_no_watch_has_shown_is_forgotten():
    """K9: a resync drops it, and its snapshots' fields are dropped at the next event of any job."""
    watching = Watching()
    _, snapshot = a_snapshot("before")
    snapshot["metadata"] |= {"uid": "s", "resourceVersion": "1"}
    watching.cache.put_snapshot(ResourceObject(snapshot))
    watching.shows_job(1)
    watching.cache.drop_job(KEY)
    watching.shows_job(2, name="another")
    watching.snapshots.enqueued.clear()

    watching.shows_job(3)

    assert watching.snapshots.enqueued == [NamespacedName(KEY.namespace, "before")]
