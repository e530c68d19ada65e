"""The contract of every object store, and the errors by which it reports a failure.

A store is asked with full URLs, such as ``s3://bucket/jobs/j1/chk-3/_metadata`` or
``file:///data/j1/log/7``, and answers with such URLs: the strings that manifests hold are the
strings that are read. A directory is a URL without a slash at its end, and exists by being used.

The error of a failed write says what the write left behind. After ``WriteFailed`` nothing is stored
and the coordinator may abort; after ``OutcomeUnknown`` the write may have succeeded, and the
coordinator must find out. ``JobRejected`` left nothing either, and a retry does not help.
"""

from collections.abc import Iterable
from typing import Protocol, TypeAlias

import pyarrow as pa

from weir.errors import JobRejected, Unavailable

RETRY_AFTER_S = 1.0
"""How long to wait before a retry, if the store gives no time."""

Data: TypeAlias = bytes | memoryview | pa.Buffer


class NotFound(JobRejected):
    """There is nothing at that URL."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url} does not exist",
            "the storage has no object of this name",
            "check the path, or bring the file back",
        )


class WriteFailed(Unavailable):
    """The write failed, and surely left nothing."""

    def __init__(self, problem: str, cause: str = "", remedy: str = "") -> None:
        super().__init__(problem, cause, remedy, retry_after=RETRY_AFTER_S)


class OutcomeUnknown(Unavailable):
    """The write was not answered: it may have happened or not."""

    def __init__(self, problem: str, cause: str = "", remedy: str = "") -> None:
        super().__init__(problem, cause, remedy, retry_after=RETRY_AFTER_S)


class ObjectStore(Protocol):
    """Whole objects under URLs. Reads of one object are consistent; a listing is only a hint."""

    def read(self, url: str) -> bytes: ...

    def read_range(self, url: str, start: int, stop: int) -> bytes:
        """The bytes from one place to before another, or fewer where the object ends."""

    def size(self, url: str) -> int: ...

    def exists(self, url: str) -> bool: ...

    def list(self, directory: str) -> tuple[str, ...]:
        """Every object below the directory, however deep, in order of their names."""

    def list_unfinished(self, directory: str) -> tuple[str, ...]:
        """Temporary files below the directory, of running or interrupted writes."""

    def write(self, url: str, data: Data) -> None:
        """Durable when it returns. What was there before is replaced in one step."""

    def copy(self, source: str, target: str) -> None:
        """Durable when it returns; the content does not pass through this process's memory."""

    def create_exclusive(self, url: str, data: bytes) -> bool:
        """Whether this very content is there now and is durable; never replaces another's.

        It is ours even if an earlier try put it there whose answer was lost. So the content has to
        say who wrote it.
        """

    def delete(self, urls: Iterable[str]) -> None:
        """In this order. What is missing is as good as deleted."""

    def make_new(self, directory: str) -> None:
        """Refuse a directory that holds something."""


def refuse_used(directory: str) -> JobRejected:
    return JobRejected(
        f"{directory} cannot be used for a savepoint",
        "it is not empty, and a savepoint needs a directory without other files",
        "choose a directory that does not exist yet",
    )
