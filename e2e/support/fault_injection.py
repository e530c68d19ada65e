"""Faults for a running job on a cluster, each injected without warning.

A fault is a block: it has happened when the block begins, and its effect on the cluster is undone
when the block ends. In between the job must recover. The tests verify that.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from applied_job import SMALL, WITHOUT_END, AppliedJob, names
from cluster import Cluster, door
from installed_operator import InstalledOperator

EXPENDABLE = 2
"""The node without the bucket and the operator; a job of a scene has its driver there at first."""

HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Scenario:
    """A job that runs, and who looks after it."""

    job: AppliedJob
    operator: InstalledOperator

    @property
    def cluster(self) -> Cluster:
        return self.operator.cluster

    def begin(self, **spec: object) -> None:
        """Apply the job; its drivers run on the expendable node as long as that is there."""
        driver = {"resources": SMALL, "podTemplate": {"spec": self._drawn()}}
        self.job.apply(WITHOUT_END, driver=driver, **spec)
        self.job.until_stable()

    def _drawn(self) -> dict[str, object]:
        there = {"key": HOSTNAME, "operator": "In", "values": [self._expendable]}
        wish = {"weight": 100, "preference": {"matchExpressions": [there]}}
        return {
            "affinity": {
                "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}
            }
        }

    @property
    def _expendable(self) -> str:
        return self.cluster.node_name(EXPENDABLE)

    def move_driver(self) -> None:
        """See that the driver runs on the expendable node."""
        if self.job.node_of(self.job.driver()) != self._expendable:
            self.job.kill(self.job.driver())
            self.job.until("a driver on the expendable node", self._has_moved)
            self.job.until_committed()

    def _has_moved(self) -> bool:
        return any(p["spec"]["nodeName"] == self._expendable for p in self.job.pods("driver"))

    def until_replaced(self, driver: str) -> None:
        """Another driver than this one runs the job."""
        self.job.until(f"a successor of {driver}", lambda: self._is_replaced(driver))

    def _is_replaced(self, driver: str) -> bool:
        now = self.job.status()["driver"]
        return bool(now["podName"] != driver and "runningSince" in now)


Fault = Callable[[Scenario], AbstractContextManager[None]]


@contextmanager
def executor_killed(scenario: Scenario) -> Iterator[None]:
    scenario.job.kill(names(scenario.job.pods("executor"))[0])
    yield


@contextmanager
def driver_killed(scenario: Scenario) -> Iterator[None]:
    scenario.job.kill(scenario.job.driver())
    yield


@contextmanager
def all_killed(scenario: Scenario) -> Iterator[None]:
    """The driver and every executor, at once."""
    pods = [scenario.job.driver(), *names(scenario.job.pods("executor"))]
    with ThreadPoolExecutor(len(pods)) as killers:
        list(killers.map(scenario.job.kill, pods))
    yield


@contextmanager
def operator_killed(scenario: Scenario) -> Iterator[None]:
    scenario.operator.kill()
    try:
        yield
    finally:
        scenario.operator.renew()


@contextmanager
def operator_killed_in_an_upgrade(scenario: Scenario) -> Iterator[None]:
    """While the savepoint of a restart is being taken; the next operator ends the upgrade."""
    job = scenario.job
    job.edit(restartNonce=job.resource()["spec"].get("restartNonce", 0) + 1)
    job.until("the upgrade begins", lambda: _is_upgrading(job))
    with operator_killed(scenario):
        job.until_stable()
        yield


def _is_upgrading(job: AppliedJob) -> bool:
    """To the newest specification, and its first step has begun."""
    now = job.resource()
    target = now["status"].get("upgrade", {}).get("toGeneration")
    is_newest = target == now["metadata"]["generation"]
    return is_newest and job.step("TakeSavepoint") not in ("", "Pending")


@contextmanager
def driver_evicted(scenario: Scenario) -> Iterator[None]:
    """An eviction through the API, as by ``kubectl drain``."""
    namespace, driver = scenario.job.namespace, scenario.job.driver()
    path = f"/api/v1/namespaces/{namespace}/pods/{driver}/eviction"
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": driver}}
    scenario.cluster.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(body))
    yield


@contextmanager
def node_drained(scenario: Scenario) -> Iterator[None]:
    """The one that the driver is on."""
    drained = scenario.job.node_of(scenario.job.driver())
    ours = ("--pod-selector=weir.dev/job", "--ignore-daemonsets", "--delete-emptydir-data")
    try:
        scenario.cluster.kubectl("drain", drained, *ours, "--force", "--timeout=50s")
        yield
    finally:
        scenario.cluster.kubectl("uncordon", drained)


def node_lost(scenario: Scenario) -> AbstractContextManager[None]:
    """Its power goes, with the driver and what else is there."""
    return _out_of_reach(scenario, scenario.cluster.node, "kill", "start")


def node_frozen(scenario: Scenario) -> AbstractContextManager[None]:
    """It hangs with the driver; when that goes on, another has its place."""
    return _out_of_reach(scenario, scenario.cluster.node, "freeze", "thaw")


def node_cut_off(scenario: Scenario) -> AbstractContextManager[None]:
    """Its cable is pulled; the driver there goes on in vain, and comes back to its successor."""
    return _out_of_reach(scenario, scenario.cluster.node, "cut", "join")


def kubelet_stopped(scenario: Scenario) -> AbstractContextManager[None]:
    """The driver runs with full connectivity, but its kubelet is down; it gets a successor."""
    return _out_of_reach(scenario, _signal_kubelet, "STOP", "CONT")


@contextmanager
def _out_of_reach(
    scenario: Scenario, act: Callable[[str, int], None], away: str, back: str
) -> Iterator[None]:
    """The driver's node is partitioned; another driver takes over, and the node returns."""
    driver = scenario.job.driver()
    act(away, EXPENDABLE)
    try:
        scenario.until_replaced(driver)
        yield
    finally:
        act(back, EXPENDABLE)
        _until_ready(scenario)


def _signal_kubelet(signal: str, node: int) -> None:
    door("node", "exec", str(node), "pkill", f"-{signal}", "-f", "kubelet --")


def _until_ready(scenario: Scenario) -> None:
    """The cluster is healthy before the next fault."""
    scenario.job.until("both nodes are ready", lambda: _are_ready(scenario.cluster))


def _are_ready(cluster: Cluster) -> bool:
    conditions = [node["status"]["conditions"] for node in cluster.items("nodes")]
    return all(
        any(each["type"] == "Ready" and each["status"] == "True" for each in of_node)
        for of_node in conditions
    )


KILLS: tuple[Fault, ...] = (
    executor_killed,
    driver_killed,
    all_killed,
    operator_killed,
    operator_killed_in_an_upgrade,
    driver_evicted,
    node_drained,
    node_lost,
)
TWO_DRIVERS: tuple[Fault, ...] = (node_frozen, node_cut_off, kubelet_stopped)
TO_THE_NODE: tuple[Fault, ...] = (node_lost, *TWO_DRIVERS)
"""They affect the expendable node, so the driver must run there."""
