"""The cluster as a test holds it in its hands: kubectl, and what can happen to a node.

Whether it is kind's or our own is not known here; ``./dev cluster`` is the one door to both.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
NODE_S = 60.0
"""So long any one command may take; none of them waits for the cluster to settle."""


class CommandFailed(Exception):
    """A command that should have succeeded did not; its words are the message."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster."""

    environment: Mapping[str, str]
    """With the kubeconfig, and kubectl on its path."""

    def kubectl(self, *arguments: str, given: str = "", namespace: str = "") -> str:
        where = ("--namespace", namespace) if namespace else ()
        return said(["kubectl", *where, *arguments], self.environment, given)

    def look(self, *arguments: str, namespace: str = "") -> dict[str, Any]:
        """What ``kubectl get`` knows of something, as it stands in the API."""
        found = json.loads(self.kubectl("get", *arguments, "-o", "json", namespace=namespace))
        assert isinstance(found, dict), "kubectl gives one object"
        return found

    def items(self, *arguments: str, namespace: str = "") -> list[dict[str, Any]]:
        return list(self.look(*arguments, namespace=namespace)["items"])

    def node(self, verb: str, number: int) -> None:
        """Let something happen to a node: kill, start, freeze, thaw, cut, join."""
        door("node", verb, str(number))

    def node_name(self, number: int) -> str:
        return door("node", "name", str(number)).strip()


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """The one that runs already, or one that is taken down again; with today's image on it."""
    was_up = _is_up()
    door("up", seconds=3600)
    try:
        door("load", seconds=1800)
        yield Cluster(_environment())
    finally:
        if not was_up:
            door("down", seconds=120)


def door(*arguments: str, seconds: float = NODE_S) -> str:
    return said([str(ROOT / "dev"), "cluster", *arguments], os.environ, seconds=seconds)


def said(
    command: list[str],
    environment: Mapping[str, str],
    given: str = "",
    *,
    seconds: float = NODE_S,
) -> str:
    """What the command said on its standard output; it must succeed."""
    done = subprocess.run(  # noqa: S603 - our own commands
        command,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise CommandFailed(f"{shlex.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _is_up() -> bool:
    try:
        door("status")
    except CommandFailed:
        return False
    return True


def _environment() -> dict[str, str]:
    """What ``./dev cluster env`` gives a shell."""
    script = 'eval "$1"; printf "%s\\0%s" "$KUBECONFIG" "$PATH"'
    values = said(["bash", "-c", script, "bash", door("env")], os.environ)
    kubeconfig, path = values.split("\0")
    return {**os.environ, "KUBECONFIG": kubeconfig, "PATH": path}
