"""What can be reached from inside a pod, determined by requests from there."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cluster import Cluster

PROGRAM = Path(__file__).with_name("http_probe.py").read_text()


@dataclass(frozen=True, slots=True)
class Call:
    """One request with a token: of a job, or of the pod's own account."""

    url: str
    method: str = "GET"
    token: str = field(default="", repr=False)
    authority: str = field(default="", repr=False)
    """Whose certificates are believed."""
    as_account: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Its status, or 0 and why there is none."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A running pod that has Python."""

    cluster: Cluster
    namespace: str
    name: str

    @property
    def ip(self) -> str:
        return str(self.cluster.look("pod", self.name, namespace=self.namespace)["status"]["podIP"])

    def calls(self, calls: Iterable[Call]) -> list[Answer]:
        """The response to each; tokens go by standard input, where no process list shows them."""
        given = json.dumps([asdict(call) for call in calls])
        command = ("exec", "-i", self.name, "--", "python3", "-c", PROGRAM)
        said = self.cluster.kubectl(*command, given=given, namespace=self.namespace)
        return [Answer(**answer) for answer in json.loads(said)]

    def call(self, call: Call) -> Answer:
        (answer,) = self.calls([call])
        return answer
