"""An etcd and a kube-apiserver without any node or controller: pods must be faked.

It runs beside any other cluster of this machine: it uses free ports, and a given folder for its
files. There is no controller, so nothing is garbage-collected, scheduled or restarted during a
test.
"""

import os
import secrets
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import yaml

from cluster import ROOT, said
from server_ports import free_server_ports

TIMEOUT_S = 120.0
POLL_S = 0.1
HOST = "127.0.0.1"
LAST_WORDS = 2_000


class BareApiFailed(Exception):
    """It could not be started; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class BareApi:
    """A running API server, with the one token that it knows."""

    url: str
    token: str
    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "ca.crt"

    def tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))

    def kubeconfig(self) -> Path:
        """For a program that may do everything."""
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        return write_kubeconfig(self.folder / "kubeconfig", cluster, {"token": self.token})


def write_kubeconfig(file: Path, cluster: dict[str, str], user: dict[str, str]) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bare",
        "contexts": [{"name": "bare", "context": {"cluster": "bare", "user": "bare"}}],
        "clusters": [{"name": "bare", "cluster": cluster}],
        "users": [{"name": "bare", "user": user}],
    }
    file.write_text(yaml.safe_dump(config))
    return file


@contextmanager
def bare_api(folder: Path) -> Iterator[BareApi]:
    """Run one until the block ends, with our resources in it."""
    program = _program()
    said([str(ROOT / "e2e" / "cluster" / "certificates"), str(folder), HOST], os.environ)
    client, peer, secure = free_server_ports(3)
    api = BareApi(f"https://{HOST}:{secure}", secrets.token_hex(16), folder)
    (folder / "tokens.csv").write_text(f"{api.token},admin,admin,system:masters\n")
    with ExitStack() as stack:
        etcd = _begun(stack, program, _etcd(folder, client, peer), folder / "etcd.log")
        server = _begun(stack, program, _server(folder, client, secure), folder / "apiserver.log")
        _until(api, "/readyz", {folder / "etcd.log": etcd, folder / "apiserver.log": server})
        _define_resources(api)
        yield api


def _program() -> Path:
    """Every program of a cluster in one file, where the cluster's own scripts put it."""
    script = f'. "{ROOT}/e2e/cluster/facts.sh"; echo "$bin/kubernetes"'
    program = Path(said(["bash", "-c", script], os.environ).strip())
    if not program.exists():
        raise BareApiFailed(
            f"{program} is missing. Build it once, in 5 to 30 minutes: e2e/cluster/build"
        )
    return program


def _begun(
    stack: ExitStack, program: Path, arguments: list[str], log: Path
) -> "subprocess.Popen[bytes]":
    output = stack.enter_context(log.open("wb"))
    process = subprocess.Popen(  # noqa: S603 - our own program
        [str(program), *arguments], stdout=output, stderr=output, stdin=subprocess.DEVNULL
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def _etcd(folder: Path, client: int, peer: int) -> list[str]:
    mine, theirs = f"http://{HOST}:{client}", f"http://{HOST}:{peer}"
    return [
        "etcd",
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        f"--listen-client-urls={mine}",
        f"--advertise-client-urls={mine}",
        f"--listen-peer-urls={theirs}",
        f"--initial-advertise-peer-urls={theirs}",
        f"--initial-cluster=default={theirs}",
    ]


def _server(folder: Path, etcd: int, port: int) -> list[str]:
    return [
        "kube-apiserver",
        f"--etcd-servers=http://{HOST}:{etcd}",
        f"--bind-address={HOST}",
        f"--secure-port={port}",
        "--advertise-address=192.0.2.1",  # required, but unused
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--tls-cert-file={folder / 'apiserver.crt'}",
        f"--tls-private-key-file={folder / 'apiserver.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'accounts.pub'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        "--disable-admission-plugins=ServiceAccount",  # no controller creates the accounts
    ]


def _until(api: BareApi, path: str, programs: "dict[Path, subprocess.Popen[bytes]]") -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while _asked(api, path) != HTTPStatus.OK:
        for log, process in programs.items():
            if process.poll() is not None:
                raise BareApiFailed(f"{log.stem} ended: {_last_words(log)}")
        if time.monotonic() > deadline:
            logs = "\n".join(_last_words(log) for log in programs)
            raise BareApiFailed(f"{TIMEOUT_S:.0f} s were not enough for {path}:\n{logs}")
        time.sleep(POLL_S)


def _last_words(log: Path) -> str:
    return log.read_text(errors="replace")[-LAST_WORDS:]


def _asked(api: BareApi, path: str, body: bytes | None = None) -> int | None:
    """How the API server answers; nothing if it does not."""
    request = urllib.request.Request(  # noqa: S310 - the URL is our own server's
        f"{api.url}{path}",
        data=body,
        headers={"Authorization": f"Bearer {api.token}", "Content-Type": "application/yaml"},
    )
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=api.tls())
    )
    try:
        with opener.open(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code
    except OSError:
        return None


def _define_resources(api: BareApi) -> None:
    """Ours, until the server serves them."""
    for file in sorted((ROOT / "crds").glob("*.yaml")):
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        answer = _asked(api, definitions, file.read_bytes())
        if answer != HTTPStatus.CREATED:
            raise BareApiFailed(f"the API server refused {file.name} with status {answer}")
        spec = yaml.safe_load(file.read_text())["spec"]
        (version,) = (each["name"] for each in spec["versions"])
        _until(api, f"/apis/{spec['group']}/{version}/{spec['names']['plural']}", {})
