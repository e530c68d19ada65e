"""The chart in the hands of Helm, with the one that ``./dev cluster env`` puts on the path.

What a chart renders is text, and what it installs is seen by kubectl; nothing here knows templates.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from cluster import ROOT, Cluster, said

CHART = str(ROOT / "helm" / "weir")
RELEASE = "weir"
NAMESPACE = "weir-system"
OLDEST = ("--kube-version", "1.29")
"""Without a cluster Helm takes some version for granted, and a Helm of ours a very old one."""


@dataclass(frozen=True, slots=True)
class Helm:
    """Helm, and the cluster that it installs into."""

    cluster: Cluster

    def rendered(self, *values: str) -> str:
        """What would be installed; templates need no cluster."""
        where = ("--namespace", NAMESPACE)
        return self._said("template", RELEASE, CHART, *OLDEST, *where, *_set(values))

    def objects(self, *values: str) -> list[dict[str, Any]]:
        return [found for found in yaml.safe_load_all(self.rendered(*values)) if found]

    def lint(self) -> None:
        self._said("lint", CHART, "--strict", *OLDEST)

    @contextmanager
    def installed(self, namespace: str, *values: str) -> Iterator[None]:
        """A release in a namespace; it goes with the block, and leaves what a release leaves."""
        where = ("--namespace", namespace, "--create-namespace", "--take-ownership")
        self._said("upgrade", "--install", RELEASE, CHART, *where, *_set(values))
        try:
            yield
        finally:
            self.uninstall(namespace)

    def uninstall(self, namespace: str) -> None:
        """Also where it was done already."""
        self._said("uninstall", RELEASE, "--ignore-not-found", "--namespace", namespace)

    def _said(self, *words: str) -> str:
        return said(["helm", *words], self.cluster.environment)


def _set(values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in ("--set", value)]
