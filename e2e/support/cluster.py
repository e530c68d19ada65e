"""The cluster for tests: kubectl, and faults of nodes.

It works with kind and with the native cluster; ``./dev cluster`` is the only interface to both.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
COMMAND_S = 60.0
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

    def kill(self, pod: str, namespace: str) -> None:
        """``kill -9`` of every process in a pod's container, all at once."""
        ends_all = ("python3", "-c", "import os, signal; os.kill(-1, signal.SIGKILL)")
        try:
            self.kubectl("exec", pod, "--", *ends_all, namespace=namespace)
        except CommandFailed:
            return  # the one that carried the order died with the others

    def node(self, verb: str, number: int) -> None:
        """Let something happen to a node: kill, start, freeze, thaw, cut, join."""
        door("node", verb, str(number))

    def node_name(self, number: int) -> str:
        return door("node", "name", str(number)).strip()


def running_cluster() -> Cluster:
    """The one that ``./dev e2e`` has started, or that ran before."""
    door("status")
    return Cluster(_environment())


def door(*arguments: str) -> str:
    return said([str(ROOT / "dev"), "cluster", *arguments], os.environ)


def said(command: list[str], environment: Mapping[str, str], given: str = "") -> str:
    """What the command said on its standard output; it must succeed."""
    done = subprocess.run(  # noqa: S603 - our own commands
        command,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    if done.returncode:
        raise CommandFailed(f"{shlex.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _environment() -> dict[str, str]:
    """What ``./dev cluster env`` gives a shell."""
    script = 'eval "$1"; printf "%s\\0%s" "$KUBECONFIG" "$PATH"'
    values = said(["bash", "-c", script, "bash", door("env")], os.environ)
    kubeconfig, path = values.split("\0")
    return {**os.environ, "KUBECONFIG": kubeconfig, "PATH": path}
