"""A job that the operator manages: the example ``running-sums``, under a separate name.

A test uses kubectl as a user does. The bucket shows whether the output is exactly once: at any
moment its committed rows must be all rows of each split up to the last one, each with the right
sum.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from bucket import Bucket
from cluster import ROOT, Cluster, CommandFailed
from output_check import Verdict
from wait_until import until
from weir.connectors.generator import GeneratorSource
from weir.connectors.generator_rows import Recipe

T = TypeVar("T")
Json = dict[str, Any]

EXAMPLE = ROOT / "manifests" / "running-sums.yaml"
KEYS, SPLITS = 5_000, 2
"""As the example has them."""

WITHOUT_END, ROWS_PER_SECOND = 0, 1_000
SMALL = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "1500Mi"}}

POLL_S = 0.5
TIMEOUT_S = 300.0
"""A driver with its executors takes half a minute to start on a machine that does other things."""


@dataclass(frozen=True)
class AppliedJob:
    """One CheckpointedJob, from its first pod to its deletion."""

    cluster: Cluster
    bucket: Bucket
    namespace: str
    name: str

    @property
    def directory(self) -> str:
        return f"s3://weir/{self.namespace}/{self.name}"

    @property
    def output(self) -> str:
        return f"{self.directory}/output"

    @property
    def source(self) -> GeneratorSource:
        return GeneratorSource(Recipe(keys=KEYS), splits=SPLITS)

    # -- what a person does

    def apply(self, rows: int = WITHOUT_END, **spec: object) -> None:
        """``kubectl apply`` the example, with this job's places and what else is chosen."""
        program, job = yaml.safe_load_all(EXAMPLE.read_text())
        program["metadata"]["name"] = job["spec"]["job"]["configMap"]["name"] = f"{self.name}-job"
        job["metadata"]["name"] = self.name
        job["spec"]["job"]["arguments"] = [str(rows), str(ROWS_PER_SECOND), self.output]
        job["spec"]["checkpointing"] = {
            "interval": "1 s",
            "storage": f"{self.directory}/checkpoints",
            "savepointDir": f"{self.directory}/savepoints",
        }
        job["spec"]["driver"] = job["spec"]["executor"] = {"resources": SMALL}
        job["spec"].update(spec)
        self._kubectl("apply", "-f", "-", given=yaml.safe_dump_all([program, job]))

    def edit(self, **spec: object) -> None:
        """Change fields of the specification; what is not named stays."""
        patch = json.dumps({"spec": spec})
        self._kubectl("patch", "checkpointedjob", self.name, "--type=merge", "--patch", patch)

    def change_program(self, old: str, new: str, name: str) -> None:
        """Make a ConfigMap of the program with one word of it changed."""
        program = self.cluster.look("configmap", f"{self.name}-job", namespace=self.namespace)
        assert old in program["data"]["job.py"], f"the program says {old}"
        text = program["data"]["job.py"].replace(old, new)
        made = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"job.py": text},
        }
        self._kubectl("apply", "-f", "-", given=yaml.safe_dump(made))

    def annotate(self, annotation: str) -> None:
        self._kubectl("annotate", "checkpointedjob", self.name, annotation, "--overwrite")

    def delete(self) -> None:
        """Delete the resource, and wait until it is gone."""
        self._kubectl("delete", "checkpointedjob", self.name, "--wait=false", "--ignore-not-found")
        self.until("the end of the resource", lambda: not self.exists())

    # -- what a person sees

    def exists(self) -> bool:
        found = self._kubectl("get", "checkpointedjob", self.name, "--ignore-not-found", "-o=name")
        return bool(found.strip())

    def resource(self) -> Json:
        return self.cluster.look("checkpointedjob", self.name, namespace=self.namespace)

    def status(self) -> Json:
        return dict(self.resource().get("status", {}))

    def condition(self, kind: str) -> Json:
        found = [c for c in self.status().get("conditions", []) if c["type"] == kind]
        return dict(found[0]) if found else {}

    def step(self, name: str) -> str:
        """How far a step of the upgrade is."""
        steps = self.status().get("upgrade", {}).get("steps", [])
        return next((str(step["state"]) for step in steps if step["name"] == name), "")

    def event_messages(self, reason: str) -> list[str]:
        """The messages of the Events with this reason."""
        about = f"involvedObject.name={self.name},reason={reason}"
        events = self.cluster.items("events", "--field-selector", about, namespace=self.namespace)
        return [str(event["message"]) for event in events]

    def snapshots(self) -> list[Json]:
        label = f"weir.dev/job={self.name}"
        return self.cluster.items("checkpointedjobsnapshots", "-l", label, namespace=self.namespace)

    def driver(self) -> str:
        """The pod of the current attempt."""
        return str(self.status()["driver"]["podName"])

    def pods(self, role: str) -> list[Json]:
        """Those of a role that run, and are not on their way out."""
        label = f"weir.dev/job={self.name},weir.dev/role={role}"
        pods = self.cluster.items("pods", "-l", label, namespace=self.namespace)
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return [pod for pod in alive if pod["status"]["phase"] == "Running"]

    def node_of(self, pod: str) -> str:
        return str(self.cluster.look("pod", pod, namespace=self.namespace)["spec"]["nodeName"])

    # -- what is waited for

    def until_state(self, state: str) -> None:
        self.until(f"the state {state}", lambda: self.status().get("state") == state)

    def until_stable(self) -> None:
        """The newest specification runs and is stable."""
        self.until("the newest specification is stable", self._is_stable)

    def _is_stable(self) -> bool:
        job = self.resource()
        status = job.get("status", {})
        deployed = status.get("deployed", {}).get("generation")
        return bool(deployed == job["metadata"]["generation"] and status["state"] == "Stable")

    def until_gone(self, pod: str) -> None:
        self.until(f"the end of {pod}", lambda: not self._named(pod))

    def _named(self, pod: str) -> bool:
        return bool(self._kubectl("get", "pod", pod, "--ignore-not-found", "-o=name").strip())

    def until_committed(self) -> float:
        """Two more commits are in the output than now; how many seconds that took."""
        began, goal = time.monotonic(), self.bucket.commits(self.output) + 2
        self.until(f"{goal} commits", lambda: self.bucket.commits(self.output) >= goal)
        return time.monotonic() - began

    def until(self, what: str, look: Callable[[], T]) -> T:
        seen = until(what, lambda: self._patiently(look), self._explained, TIMEOUT_S, POLL_S)
        assert seen is not None, "it waits for something"
        return seen

    def _patiently(self, look: Callable[[], T]) -> T | None:
        """A look that the API server could not serve is repeated."""
        try:
            return look()
        except CommandFailed:
            return None

    def _explained(self) -> str:
        what = ("checkpointedjobs,checkpointedjobsnapshots,pods", "-o", "wide")
        return "\n".join(
            (self._kubectl("get", *what), self._kubectl("events"), json.dumps(self._essence()))
        )

    def _essence(self) -> Json:
        """The status without the specifications in it."""
        return {k: v for k, v in self.status().items() if k not in ("deployed", "stable")}

    def verdict(self) -> Verdict:
        """Of what is committed so far."""
        return self.bucket.verdict_so_far(self.output, self.source)

    # -- what happens to it

    def kill(self, pod: str) -> None:
        self.cluster.kill(pod, self.namespace)

    def _kubectl(self, *words: str, given: str = "") -> str:
        return self.cluster.kubectl(*words, given=given, namespace=self.namespace)


def names(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(found["metadata"]["name"]) for found in objects]
