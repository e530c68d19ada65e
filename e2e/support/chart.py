"""Runs Helm on the chart, with the helm of ``./dev cluster env``.

What a chart renders is text, and what it installs is verified by kubectl; nothing here parses
templates. An earlier version of the chart comes from the history, so that an upgrade starts from
what users have.
"""

import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cluster import ROOT, Cluster, CommandFailed, said

RELEASE = "weir"
NAMESPACE = "weir-system"
OLDEST = ("--kube-version", "1.29")
"""Without a cluster Helm takes some version for granted, and a Helm of ours a very old one."""


class NoHistory(Exception):
    """This checkout knows no earlier edition; the message says how it can."""


@dataclass(frozen=True, slots=True)
class Edition:
    """The chart and the definitions as they were at one time."""

    root: Path

    @property
    def chart(self) -> str:
        return str(self.root / "helm" / "weir")

    @property
    def definitions(self) -> str:
        return str(self.root / "crds")


OURS = Edition(ROOT)


def earlier(folder: Path) -> Edition:
    """The one before the newest commit that changed anything of it, laid out in a folder."""
    archive, parts = folder / "earlier.tar", ("helm/weir", "crds")
    try:
        newest = _git("log", "--max-count=1", "--format=%H", "--", *parts).strip()
        _git("archive", "--format=tar", f"--output={archive}", f"{newest}^", *parts)
    except CommandFailed as problem:
        raise NoHistory(
            "this checkout does not know the chart as it was before its newest change;"
            f" in a clone `git fetch --unshallow` brings it: {problem}"
        ) from problem
    with tarfile.open(archive) as kept:
        kept.extractall(folder, filter="data")
    return Edition(folder)


def _git(*words: str) -> str:
    return said(["git", "-C", str(ROOT), *words], os.environ)


@dataclass(frozen=True, slots=True)
class Helm:
    """Helm, and the cluster that it installs into."""

    cluster: Cluster

    def rendered(self, *values: str) -> str:
        """What would be installed; templates need no cluster."""
        where = ("--namespace", NAMESPACE)
        return self._said("template", RELEASE, OURS.chart, *OLDEST, *where, *_set(values))

    def objects(self, *values: str) -> list[dict[str, Any]]:
        return [found for found in yaml.safe_load_all(self.rendered(*values)) if found]

    def lint(self) -> None:
        self._said("lint", OURS.chart, "--strict", *OLDEST)

    @contextmanager
    def installed(self, namespace: str, *values: str) -> Iterator[None]:
        """A release in a namespace; it goes with the block, and leaves what a release leaves."""
        self.install(namespace, *values)
        try:
            yield
        finally:
            self.uninstall(namespace)

    def install(self, namespace: str, *values: str, edition: Edition = OURS) -> None:
        """Where there is a release already, it is upgraded; values not named are the chart's."""
        where = ("--namespace", namespace, "--create-namespace", "--take-ownership")
        self._said("upgrade", "--install", RELEASE, edition.chart, *where, *_set(values))

    def uninstall(self, namespace: str) -> None:
        """Also where it was done already."""
        self._said("uninstall", RELEASE, "--ignore-not-found", "--namespace", namespace)

    def _said(self, *words: str) -> str:
        return said(["helm", *words], self.cluster.environment)


def _set(values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in ("--set", value)]
