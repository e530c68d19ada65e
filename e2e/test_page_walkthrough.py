"""The commands of the page "A job on Kubernetes" work from an empty cluster to the end.

The test runs the commands of the page in order. Each prints what the page shows, and the results in
the bucket are verified.
"""

from contextlib import suppress

import pytest

from applied_job import KEYS, SPLITS, TIMEOUT_S, names
from chart import NAMESPACE, RELEASE, Helm
from cluster import ROOT, CommandFailed
from failure_report import collect
from page_walkthrough import FollowedPage, steps
from random_seed import show
from wait_until import until
from weir.connectors.generator import GeneratorSource
from weir.connectors.generator_rows import Recipe
from weir.storage.stores import store_for

pytestmark = pytest.mark.thorough

PAGE = ROOT / "docs" / "kubernetes.md"
JOB, JOBS = "running-sums", "default"
"""Of the page, and where it runs."""
OURS = ("-l", f"weir.dev/job={JOB}")
KINDS = ("checkpointedjobs", "checkpointedjobsnapshots")
PLACE = "s3://weir/running-sums"
OUTPUT = f"{PLACE}/output"

POLL_S = 0.5


@pytest.fixture(scope="module")
def page(cluster, bucket, request, tmp_path_factory):
    """A reader before the first line; whatever they make goes, however far they get."""
    broken = request.session.testsfailed
    clear(cluster, bucket)
    adopt_definitions(cluster)
    todo = [step for step in steps(PAGE) if not (step.is_another_way or step.is_own_doing)]
    try:
        yield FollowedPage(todo, cluster.environment, tmp_path_factory.mktemp("page") / "memory")
        if request.session.testsfailed > broken:
            for namespace in (JOBS, NAMESPACE):
                collect(
                    cluster, namespace, ROOT / "build" / "e2e" / "test_page_walkthrough" / namespace
                )
    finally:
        clear(cluster, bucket)


def clear(cluster, bucket):
    """A clean cluster; what an earlier run has left is force-deleted."""
    Helm(cluster).uninstall(NAMESPACE)
    cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")
    for kind, name in resources(cluster):
        remove_finalizer(cluster, kind, name)
    cluster.kubectl("delete", "configmap", f"{JOB}-job", "--ignore-not-found", namespace=JOBS)
    see(cluster, "the end of its pods", lambda: not pods(cluster))
    see(cluster, "the end of the operator", lambda: is_gone(cluster))
    store_for(PLACE, bucket.storage()).delete(bucket.files(PLACE))


def remove_finalizer(cluster, kind, name):
    """No operator runs that would remove its finalizer."""
    free = '{"metadata": {"finalizers": null}}'
    cluster.kubectl("delete", kind, name, "--ignore-not-found", "--wait=false", namespace=JOBS)
    with suppress(CommandFailed):  # it is gone already
        cluster.kubectl("patch", kind, name, "--type=merge", "-p", free, namespace=JOBS)


def adopt_definitions(cluster):
    """Helm takes only what is new or its own, and other tests have left the definitions."""
    owner = (f"meta.helm.sh/release-name={RELEASE}", f"meta.helm.sh/release-namespace={NAMESPACE}")
    for kind in defined(cluster):
        which = ("customresourcedefinition", f"{kind}.weir.dev", "--overwrite")
        cluster.kubectl("annotate", *which, *owner)
        cluster.kubectl("label", *which, "app.kubernetes.io/managed-by=Helm")


def defined(cluster):
    """The kinds of ours that the cluster knows."""
    known = cluster.kubectl("get", "customresourcedefinitions", "-o", "name")
    return [kind for kind in KINDS if f"/{kind}.weir.dev" in known]


def resources(cluster):
    """The page's job and its snapshots: kinds and names."""
    return [
        (kind, name)
        for kind in defined(cluster)
        for name in names(cluster.items(kind, namespace=JOBS))
        if name.startswith(JOB)
    ]


def pods(cluster):
    return cluster.items("pods", *OURS, namespace=JOBS)


def is_gone(cluster):
    return not cluster.kubectl("get", "namespace", NAMESPACE, "--ignore-not-found", "-o", "name")


def see(cluster, what, look):
    until(what, look, lambda: cluster.kubectl("get", "pods", "-A"), TIMEOUT_S, POLL_S)


def goes_on(cluster, bucket, what):
    """The job commits twice more, and all that it has ever committed is right."""
    goal = bucket.commits(OUTPUT) + 2
    see(cluster, f"{goal} commits", lambda: bucket.commits(OUTPUT) >= goal)
    verdict = bucket.verdict_so_far(OUTPUT, GeneratorSource(Recipe(keys=KEYS), splits=SPLITS))
    show(f"{what}: {verdict}")
    assert verdict.is_exactly_once, verdict


def test_it_leads_from_nothing_to_results(page, cluster, bucket):
    """K1 K2 K11 U2."""
    page.follow_to("Its results")

    goes_on(cluster, bucket, "the page's job runs")


def test_a_driver_that_its_reader_kills_costs_nothing(page, cluster, bucket):
    """R1 C17 K3 K7."""
    page.follow_to("Kill it")

    goes_on(cluster, bucket, "the reader has killed its driver")


def test_the_savepoint_of_its_reader_is_in_the_bucket(page, cluster, bucket):
    """K5."""
    page.follow_to("Take a savepoint")

    (taken,) = cluster.items("checkpointedjobsnapshots", *OURS, namespace=JOBS)
    assert taken["status"]["path"].startswith(f"{PLACE}/savepoints/")
    assert bucket.files(taken["status"]["path"])


def test_an_edit_of_its_reader_keeps_the_state(page, cluster, bucket):
    """K4 K6 S11."""
    page.follow_to("Upgrade it")

    goes_on(cluster, bucket, "the reader has upgraded it")
    assert cluster.look("checkpointedjob", JOB, namespace=JOBS)["status"]["parallelism"] == 3


def test_a_job_that_its_reader_has_stopped_goes_on(page, cluster, bucket):
    """K6."""
    page.follow_to("Suspend and resume it")

    goes_on(cluster, bucket, "the reader has stopped it and let it go on")


def test_it_leaves_nothing_but_what_the_job_has_written(page, cluster, bucket):
    """K10 K11."""
    page.follow_to("Clean up")

    see(cluster, "the end of its pods", lambda: not pods(cluster))
    assert is_gone(cluster)
    assert not resources(cluster)
    assert bucket.files(f"{PLACE}/savepoints")


def test_no_command_of_the_page_is_left_out(page):
    """K11 U3: but for other ways to the same place."""
    page.follow_to("Clean up")

    assert not page.ahead


def test_what_the_page_does_with_the_cluster_is_what_these_tests_do():
    """K11: ``./dev e2e`` starts it, loads the image, and ends it."""
    event_messages = {line for step in steps(PAGE) if step.is_own_doing for line in step.lines}

    verbs = ("up", "load", "down")
    assert event_messages == {
        *(f"./dev cluster {verb}" for verb in verbs),
        'eval "$(./dev cluster env)"',
    }


def test_the_readme_shows_what_is_on_the_page():
    """D5 K11: and nothing that no test has tried."""
    tried = {line for step in steps(PAGE) if not step.is_another_way for line in step.lines}
    (shown,) = [step for step in steps(ROOT / "README.md") if step.section == "On Kubernetes"]

    assert [line for line in shown.lines if line not in tried] == []
