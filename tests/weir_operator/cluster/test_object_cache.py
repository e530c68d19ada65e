"""Cached resources take no more memory than allowed."""

import asyncio

from reconciled_job import KEY, ReconciledJob, a_job
from weir_operator.cluster.api_paths import JOBS, NamespacedName
from weir_operator.cluster.object_cache import ObjectCache, cached_object
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.resource.validation import LARGEST_SPEC_BYTES

LARGE = "x" * 100_000


def a_copy(name="orders", version=1, **metadata):
    body = a_job(driver={"env": [{"name": "A", "value": LARGE}]})
    body["metadata"] |= {"name": name, "resourceVersion": str(version)} | metadata
    return ResourceObject(body)


def test_many_large_resources_take_no_more_than_was_allowed():
    """K9: beyond it they are known by their versions alone."""
    kept = ObjectCache(most_bytes=500_000)
    for number in range(30):
        kept.put(a_copy(f"orders-{number}"))

    assert len(kept) == 30
    assert kept.held_bytes <= 500_000
    assert [resource.text is None for resource in kept.values()].count(False) == 4


def test_a_resource_whose_text_was_dropped_is_read_again():
    """K9: nothing is lost but time."""
    job = ReconciledJob(driver={"env": [{"name": "A", "value": LARGE}]})
    kept = ObjectCache(most_bytes=150_000)
    kept.put(ResourceObject(job.job))
    kept.put(a_copy("another"))
    assert kept[KEY].text is None

    found = asyncio.run(cached_object(job.api, JOBS, kept, KEY))

    assert found.spec == job.job["spec"]
    assert [call.path for call in job.api.calls] == [JOBS.object_path(KEY)]
    assert kept[KEY].text is not None


def test_a_resource_that_is_gone_meanwhile_is_forgotten():
    """K9."""
    job = ReconciledJob()
    kept = ObjectCache(most_bytes=10)
    kept.put(ResourceObject(job.job))
    del job.api.objects[JOBS.object_path(KEY)]

    assert asyncio.run(cached_object(job.api, JOBS, kept, KEY)) is None
    assert KEY not in kept


def test_a_resource_without_its_text_still_tells_news_from_repetition():
    """K3 K9: a job whose copy was dropped is not rung for by each of our own writes."""
    kept = ObjectCache(most_bytes=10)
    kept.put(a_copy(version=5))

    assert not kept.put(a_copy(version=5))
    assert not kept.put(a_copy(version=6))
    assert kept.put(a_copy(version=7, generation=2))
    assert not kept.put(a_copy(version=6, generation=1))
    assert kept[KEY].version == "7"


def test_a_specification_that_is_refused_for_its_size_is_not_kept():
    """K9: only how large it is."""
    kept = ObjectCache(most_bytes=10**9)
    body = a_copy()
    body.body["spec"]["driver"]["env"] *= 2

    kept.put(body)

    found = kept[KEY].to_object()
    assert kept.held_bytes < 1_000
    assert found.spec == {}
    assert found.spec_bytes == body.spec_bytes > LARGEST_SPEC_BYTES


def test_annotations_that_ask_for_nothing_are_not_kept():
    """K9: kubectl and others write a copy of the whole object there."""
    others = {"kubectl.kubernetes.io/last-applied-configuration": LARGE, "a": LARGE}
    kept = ObjectCache(most_bytes=10**9)
    kept.put(a_copy(annotations=others))
    before = kept.held_bytes

    assert not kept.put(a_copy(version=2, annotations=others | {"b": LARGE}))
    assert kept.put(a_copy(version=3, annotations={"weir.dev/savepoint": LARGE}))
    assert abs(kept.held_bytes - before) < 200


def test_a_long_annotation_means_the_same_before_and_after_it_was_kept():
    """K5: or it would ask for two savepoints."""
    body = a_copy(annotations={"weir.dev/savepoint": LARGE})
    kept = ObjectCache(most_bytes=10**9)
    kept.put(body)

    assert kept[KEY].to_object().annotations == body.annotations


def test_a_dropped_resource_leaves_no_bytes_behind():
    """K9."""
    kept = ObjectCache(most_bytes=10**9)
    for _ in range(3):
        kept.put(a_copy())
        kept.drop(KEY)
    kept.drop(NamespacedName("shop", "never-there"))

    assert (kept.held_bytes, len(kept)) == (0, 0)
