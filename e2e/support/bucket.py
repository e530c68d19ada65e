"""The cluster's bucket, read from this machine: the only evidence that an e2e test uses.

It is reached by a forwarded port, which works with any network of the cluster. The port is
forwarded again when its connection is lost.
"""

import base64
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import output_check as judging
from cluster import Cluster
from weir.connectors.commit_records import CommitRecords
from weir.connectors.generator import GeneratorSource
from weir.errors import Unavailable
from weir.storage.stores import store_for

FORWARDED_S = 30.0


@dataclass
class Bucket:
    """The bucket ``weir``, and a hand on the port that leads there."""

    cluster: Cluster
    _forwarding: subprocess.Popen[str] | None = None
    _storage: dict[str, str] | None = field(default=None, repr=False)

    def storage(self) -> dict[str, str]:
        """How it is reached now."""
        if self._forwarding is None or self._forwarding.poll() is not None or not self._storage:
            self.close()
            self._storage = self._forward()
        return self._storage

    def _forward(self) -> dict[str, str]:
        secret = self.cluster.look("secret", "s3")["data"]
        command = ["kubectl", "port-forward", "pod/s3", ":8333", "--address", "127.0.0.1"]
        self._forwarding = subprocess.Popen(  # noqa: S603 - our own command
            command, env=self.cluster.environment, stdout=subprocess.PIPE, text=True
        )
        assert self._forwarding.stdout is not None
        line = self._forwarding.stdout.readline()
        assert line.startswith("Forwarding from"), f"the S3 pod cannot be reached: {line}"
        port = line.partition("127.0.0.1:")[2].partition(" ")[0]
        return {
            "endpoint_url": f"http://127.0.0.1:{port}",
            "key": base64.b64decode(secret["AWS_ACCESS_KEY_ID"]).decode(),
            "secret": base64.b64decode(secret["AWS_SECRET_ACCESS_KEY"]).decode(),
        }

    def commits(self, output: str) -> int:
        """How often a job has committed its output."""
        deadline = time.monotonic() + FORWARDED_S
        while True:
            try:
                return CommitRecords(store_for(output, self.storage()), output).newest()
            except (Unavailable, OSError):
                if time.monotonic() > deadline:
                    raise
                self.close()

    def files(self, directory: str) -> tuple[str, ...]:
        """All objects below a directory; the S3 may still list an empty one itself."""
        found = store_for(directory, self.storage()).list(directory)
        return tuple(url for url in found if url != directory)

    def verdict(self, output: str, source: GeneratorSource) -> judging.Verdict:
        return judging.judge(output, source, self.storage())

    def verdict_so_far(self, output: str, source: GeneratorSource) -> judging.Verdict:
        return judging.judge_so_far(output, source, self.storage())

    def close(self) -> None:
        if self._forwarding is not None:
            self._forwarding.kill()
            self._forwarding.wait()
            if self._forwarding.stdout is not None:
                self._forwarding.stdout.close()
            self._forwarding = None


@contextmanager
def open_bucket(cluster: Cluster) -> Iterator[Bucket]:
    bucket = Bucket(cluster)
    try:
        yield bucket
    finally:
        bucket.close()
