"""Gives every promise the same cluster, a bucket, and a job in a namespace of its own.

When a promise is broken, what the cluster had to say about it is in one folder; the report says
which.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bucket import Bucket, open_bucket
from cluster import Cluster, running_cluster
from deployed_job import DeployedJob, deployed_job
from evidence import collect

FAILURES = Path(__file__).parent.parent / "build" / "e2e"
BROKEN = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    return running_cluster()


@pytest.fixture(scope="session")
def bucket(cluster: Cluster) -> Iterator[Bucket]:
    with open_bucket(cluster) as bucket:
        yield bucket


@pytest.fixture
def deploy(
    cluster: Cluster, bucket: Bucket, request: pytest.FixtureRequest
) -> Iterator[Callable[..., DeployedJob]]:
    """Starts a job; when the test has failed, its remains are collected before they go."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())
    namespace = f"{words[5:40].strip('-')}-{int(time.time()) % 100_000}"
    with ExitStack() as stack:

        def deploy(*, rows: int, driver_node: str = "") -> DeployedJob:
            job = deployed_job(cluster, bucket, namespace, rows=rows, driver_node=driver_node)
            return stack.enter_context(job)

        yield deploy
        if request.node.stash.get(BROKEN, False):
            folder = FAILURES / request.node.name
            collect(cluster, namespace, folder)
            request.node.add_report_section("teardown", "evidence", f"collected in {folder}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call" and report.failed:
        item.stash[BROKEN] = True
    return report
