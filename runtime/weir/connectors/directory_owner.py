"""Keeps two jobs out of one directory: a file in it names the job and the sink that own it.

Staged files are found by their operator and their epoch, which two jobs may have in common. So a
job deletes and commits nothing in a directory that names another. The name of a job is its
checkpoint directory: it is the same after a restart, an upgrade and a takeover. A job that restores
a savepoint of another job continues that one's output, and so becomes the owner in its place;
the one before is refused from then on.
"""

import json
import logging
from dataclasses import dataclass

from weir.errors import JobRejected
from weir.ports.sinks import SinkOwner
from weir.storage.stores import NotFound, ObjectStore

log = logging.getLogger("weir.connectors")

OWNER_FILE = "_owner"


@dataclass(frozen=True, slots=True)
class DirectoryOwner:
    """The owner's file of one directory."""

    store: ObjectStore
    directory: str

    def claim(self, owner: SinkOwner) -> None:
        """Make the directory this job's, unless it is another's."""
        present = self._read()
        if present != _content(owner) and present and owner.may_take_over:
            before = _shown(present)
            log.warning("%s belonged to %s; %s takes it over.", self.directory, before, owner)
            self.store.write(self._url, _content(owner))
            return
        self.check(owner)

    def check(self, owner: SinkOwner) -> None:
        """Refuse a directory that is not this job's any more; one that was emptied is taken."""
        content = _content(owner)
        present = self._read()
        if present == content or (not present and self.store.create_exclusive(self._url, content)):
            return
        raise JobRejected(
            f"{self.directory} belongs to {_shown(self._read())}",
            f"this is {owner}, and a directory has one sink",
            "give every sink a directory that no other sink uses. If that job is over and its "
            "output is not wanted, empty the directory; to continue its output, restore its "
            "savepoint",
        )

    def _read(self) -> bytes:
        try:
            return self.store.read(self._url)
        except NotFound:
            return b""

    @property
    def _url(self) -> str:
        return f"{self.directory}/{OWNER_FILE}"


def _content(owner: SinkOwner) -> bytes:
    return json.dumps({"job": owner.job, "sink": owner.sink}, indent=1).encode()


def _shown(content: bytes) -> str:
    """The content of the file as text; unknown content is shown as it is."""
    try:
        read = json.loads(content)
        return f"sink {read['sink']} of job {read['job']}"
    except (ValueError, KeyError, TypeError):
        return f"another job ({content[:200]!r})"
