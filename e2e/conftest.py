"""Provides the cluster, the bucket and a job in a separate namespace for every scenario.

When a scenario fails, the state of the cluster is collected in one folder, which the report names.
Notes of the tests are repeated at the end, with the seed that reproduces the run; ``--all`` runs
everything where otherwise a sample is run, ``--chaos N`` only the long run of N faults. Tests
without the operator run first, because an operator for the whole cluster would interfere with them.
"""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from applied_job import AppliedJob
from bucket import Bucket, open_bucket
from chart import NAMESPACE as OPERATOR_NAMESPACE
from cluster import Cluster, running_cluster
from deployed_job import DeployedJob, deployed_job
from failure_report import collect
from fault_injection import Scenario
from installed_operator import InstalledOperator, installed_operator
from random_seed import SEED, runs_all
from scenario_report import describe, promises

FAILURES = Path(__file__).parent.parent / "build" / "e2e"
REPORT = FAILURES / "promises.txt"
BROKEN = pytest.StashKey[bool]()
TITLES = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        help="keep every promise, and kill the operator at every write, not at a sample of them",
    )
    parser.addoption(
        "--chaos",
        type=int,
        default=0,
        metavar="N",
        help="inject N faults into one long-running job, in an order drawn from the seed",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thorough: takes minutes; runs only with --all")
    config.addinivalue_line("markers", "chaos: runs only, and alone, with --chaos N")
    if config.getoption("--all"):
        os.environ["WEIR_ALL"] = "1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = [item for item in items if not _is_asked_for(item)]
    config.hook.pytest_deselected(items=left)
    items[:] = sorted((item for item in items if item not in left), key=_needs_operator)
    config.stash[TITLES] = {item.location[0]: _title(item) for item in items}


def _title(item: pytest.Item) -> str:
    """The sentence that the item's file begins with."""
    module = item.getparent(pytest.Module)
    words = (module and module.obj.__doc__) or item.location[0]
    return str(words).partition("\n\n")[0].replace("\n", " ").rstrip(".")


def _is_asked_for(item: pytest.Item) -> bool:
    is_chaos = item.get_closest_marker("chaos") is not None
    if item.config.getoption("--chaos") or is_chaos:
        return is_chaos and bool(item.config.getoption("--chaos"))
    return runs_all() or item.get_closest_marker("thorough") is None


def _needs_operator(item: pytest.Item) -> bool:
    return "operator" in getattr(item, "fixturenames", ())


def pytest_report_header() -> str:
    return f"seed: WEIR_SEED={SEED}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Each promise with its time and what its tests have shown, here and in a file."""
    titles: dict[str, str] = terminalreporter.config.stash.get(TITLES, {})
    reports = [r for found in terminalreporter.stats.values() for r in found]
    kept = promises([r for r in reports if isinstance(r, pytest.TestReport)], titles)
    if not kept:
        return
    terminalreporter.section("promises")
    for line in describe(kept):
        terminalreporter.write_line(line)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text("\n".join(describe(kept)) + "\n")


@pytest.fixture
def progress(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Shows the progress of a long test."""
    plugins = request.config.pluginmanager
    terminal, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")
    assert isinstance(terminal, pytest.TerminalReporter), "pytest says what it does"
    assert capture is not None, "and keeps what tests print"

    def tell(line: str) -> None:
        with capture.global_and_fixture_disabled():
            terminal.write_line(line)
            terminal.flush()  # for readers of a log file, too

    return tell


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


@pytest.fixture(scope="session")
def operator(cluster: Cluster) -> Iterator[InstalledOperator]:
    """One for all promises, with a namespace in which drivers have their account."""
    with installed_operator(cluster, f"jobs-{int(time.time()) % 100_000}") as operator:
        yield operator


@pytest.fixture(scope="module")
def job(
    operator: InstalledOperator, bucket: Bucket, request: pytest.FixtureRequest
) -> Iterator[AppliedJob]:
    """One job for all promises of a file, called after it; nothing is applied yet."""
    words = request.module.__name__.rpartition(".")[2].removeprefix("test_")
    name = words.replace("_", "-")[:30].strip("-")
    job = AppliedJob(operator.cluster, bucket, operator.jobs, name)
    yield job
    job.delete()


@pytest.fixture(scope="module")
def scenario(job: AppliedJob, operator: InstalledOperator) -> Scenario:
    """That job, on a node where faults can be injected."""
    scenario = Scenario(job, operator)
    scenario.begin()
    return scenario


@pytest.fixture(autouse=True)
def _remains(request: pytest.FixtureRequest) -> Iterator[None]:
    """When a promise about the operator was broken, what is left is collected before it goes."""
    yield
    if not (_needs_operator(request.node) and request.node.stash.get(BROKEN, False)):
        return
    operator: InstalledOperator = request.getfixturevalue("operator")
    folder = FAILURES / request.node.name
    for namespace in (operator.jobs, OPERATOR_NAMESPACE):
        collect(operator.cluster, namespace, folder / namespace)
    request.node.add_report_section("teardown", "evidence", f"collected in {folder}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call" and report.failed:
        item.stash[BROKEN] = True
    return report
