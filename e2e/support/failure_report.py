"""Collects the state of the cluster after a failure, before it is cleaned up.

Everything goes into one folder for each failed test. What cannot be collected is noted there
instead, because a broken cluster is the most interesting case.
"""

from collections.abc import Callable
from pathlib import Path

from cluster import Cluster, CommandFailed, door


def collect(cluster: Cluster, namespace: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    events = ("events", "--sort-by=.lastTimestamp")
    everything = ("pods,services,configmaps", "-o", "yaml")
    resources = ("checkpointedjobs,checkpointedjobsnapshots", "-o", "yaml")
    _note(folder / "status.txt", lambda: door("status"))
    _note(folder / "nodes.txt", lambda: cluster.kubectl("describe", "nodes"))
    _note(folder / "events.txt", lambda: _in(cluster, namespace, *events))
    _note(folder / "objects.yaml", lambda: _in(cluster, namespace, *everything))
    _note(folder / "resources.yaml", lambda: _in(cluster, namespace, *resources))
    for pod in _pods(cluster, namespace):
        _note(folder / f"{pod}.log.txt", _logs(cluster, namespace, pod))
        _note(folder / f"{pod}.before.txt", _logs(cluster, namespace, pod, "--previous"))


def _in(cluster: Cluster, namespace: str, *what: str) -> str:
    return cluster.kubectl("get", *what, namespace=namespace)


def _logs(cluster: Cluster, namespace: str, pod: str, *options: str) -> Callable[[], str]:
    ask = ("logs", pod, "--all-containers", *options)
    return lambda: cluster.kubectl(*ask, namespace=namespace)


def _pods(cluster: Cluster, namespace: str) -> list[str]:
    try:
        return [pod["metadata"]["name"] for pod in cluster.items("pods", namespace=namespace)]
    except CommandFailed:
        return []


def _note(file: Path, ask: Callable[[], str]) -> None:
    try:
        file.write_text(ask())
    except (CommandFailed, TimeoutError) as problem:
        file.write_text(f"could not be had: {problem}\n")
