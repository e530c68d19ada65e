"""Signs pickled user objects, so that a job never loads a pickle that it has not written.

PySpark's partitions and commit messages are objects of any class. Checkpoints hold them between the
process that makes them and the one that uses them, and unpickling bytes that another party has
written there would run that party's code. So each pickle is signed with the job's key, and the
signature is checked before the pickle is loaded (spec X2).

The key comes from ``WEIR_SECRET`` if that is set, else from a file in the user's home directory
that only the user can read. It is never kept in the job's storage, because every writer of the
storage could then sign. This protects from a writer of the storage; a party that can read the home
directory or the environment of the driver already acts as the job's user. A driver on another
machine needs the same key, hence the variable; jobs that share a secret trust each other.
"""

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from pyspark import cloudpickle

from weir.api.environment_variables import WEIR_SECRET
from weir.errors import JobRejected

KEYS = Path(".local/state/weir/keys")
KEY_BYTES = 32
MAC_BYTES = hashlib.sha256().digest_size


class InvalidSignature(JobRejected):
    """A pickle was not signed with this job's key."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was not signed with this job's key and is not loaded",
            "the job was started elsewhere before, or another party has written to its storage",
            f"set {WEIR_SECRET} to one value wherever the job's drivers run",
        )


@dataclass(frozen=True, slots=True)
class JobKey:
    """A secret of the job's processes that a writer of its storage does not have."""

    secret: bytes = field(repr=False)

    def mac(self, purpose: str, data: bytes) -> bytes:
        return hmac.digest(self.secret, purpose.encode() + b"\0" + data, hashlib.sha256)

    def pickled(self, purpose: str, value: object) -> bytes:
        """A signature, then the pickle."""
        data: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
        return self.mac(purpose, data) + data

    def unpickled(self, purpose: str, signed: bytes, what: str) -> object:
        """The value, if this job has signed it for this purpose; ``what`` names it to people."""
        mac, data = signed[:MAC_BYTES], signed[MAC_BYTES:]
        if not hmac.compare_digest(mac, self.mac(purpose, data)):
            raise InvalidSignature(what)
        value: object = cloudpickle.loads(data)
        return value


def job_key(job: str, environment: Mapping[str, str], home: Path) -> JobKey:
    """The key of the job of this name, made when it is asked for the first time."""
    if secret := environment.get(WEIR_SECRET):
        return JobKey(hashlib.sha256(b"weir job key\0" + secret.encode()).digest())
    path = home / KEYS / quote(job, safe="")
    if not path.exists():
        _make(path)
    return JobKey(_read(path))


def _make(path: Path) -> None:
    """A link appears whole or not at all, so of two drivers one makes the key for both."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{secrets.token_hex(8)}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    with suppress(FileExistsError):
        path.hardlink_to(fresh)
    fresh.unlink()


def _read(path: Path) -> bytes:
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise JobRejected(
            f"{path} holds a job's key and others may use it",
            "its mode gives rights to other users",
            f"take these rights away (chmod 600), delete the file, or set {WEIR_SECRET}",
        )
    return path.read_bytes()
