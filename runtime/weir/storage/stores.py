"""Finds the store for a URL by its scheme.

A store serves every URL of its scheme. Only schemes are supported whose exclusive creation is known
to be exclusive, because the protection from a second driver depends on it (spec C17).
"""

from collections.abc import Mapping
from pathlib import Path

from weir.errors import JobRejected
from weir.storage.file_store import SCHEME as FILE
from weir.storage.file_store import FileStore
from weir.storage.memory_store import MemoryStore
from weir.storage.object_store import Data, NotFound, ObjectStore, OutcomeUnknown, WriteFailed
from weir.storage.s3_store import SCHEMES as S3
from weir.storage.s3_store import S3Store

__all__ = [
    "Data",
    "NotFound",
    "ObjectStore",
    "OutcomeUnknown",
    "WriteFailed",
    "as_url",
    "store_for",
]

MEMORY = "memory://"


def as_url(place: str) -> str:
    """A path of this machine may be written as one; whatever is empty or a URL stays as it is.

    Hadoop writes the path of a file with one slash, as ``file:/data``.
    """
    if not place or "://" in place:
        return place
    path = place.removeprefix("file:") if place.startswith("file:/") else place
    return f"{FILE}{Path(path).absolute()}"


def store_for(url: str, options: Mapping[str, object] | None = None) -> ObjectStore:
    """A new store. Make it in the process that uses it: connections do not survive a fork.

    The options are for S3 and override what the environment says; they may hold secrets, and are
    never shown.
    """
    if url.startswith(S3):
        return S3Store(options or {})
    if url.startswith(FILE):
        return FileStore()
    if url.startswith(MEMORY):
        return MemoryStore()
    scheme = url.partition("://")[0]
    raise JobRejected(
        f"{scheme}:// cannot hold checkpoints yet",
        "no way is known to create a file there that exactly one of two drivers wins",
        "use s3:// or file://",
    )
