"""Carries sealed rows from the slots to the driver, for sinks that exist only in the driver.

Rows are staged in Arrow files until the driver reads them. If the user sets no path, the files are
in the temporary directory of the machine, which is enough for jobs without a cluster. Rows that an
earlier driver staged may be lost with it; its memory or console, which would show them, is lost
too.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from weir.connectors import transaction_names
from weir.connectors.directory_owner import DirectoryOwner
from weir.connectors.encodings import Encoding
from weir.connectors.staging import Staging, StagingWriter
from weir.connectors.transaction_names import new_token
from weir.errors import JobRejected
from weir.ports.operators import TaskInfo
from weir.ports.sinks import SinkOwner
from weir.storage.stores import store_for


@dataclass(frozen=True, slots=True)
class DriverStaging:
    """A directory that all slots and the driver can reach."""

    url: str
    token: str
    storage: Mapping[str, str] = field(default_factory=dict)
    is_named: bool = False
    """The user set the directory, so another job may use the same one."""

    @classmethod
    def at(cls, url: str, storage: Mapping[str, str]) -> Self:
        """Staging at this URL, or in a temporary directory if it is empty."""
        token = new_token()
        place = url or f"file://{tempfile.gettempdir()}/weir-{token}"
        return cls(place, token, storage, is_named=bool(url))

    def writer(self, place: TaskInfo) -> StagingWriter:
        return StagingWriter(self.staging(), place, self.token)

    def staged_rows(self) -> "StagedRows":
        return StagedRows(self.staging(), self.token, self.is_named)

    def staging(self) -> Staging:
        return Staging(store_for(self.url, self.storage), self.url.rstrip("/"), Encoding.ARROW)


@dataclass(frozen=True, slots=True)
class StagedRows:
    """The staged rows as the driver reads them."""

    staging: Staging
    token: str
    is_named: bool = False

    def claim(self, owner: SinkOwner) -> None:
        if self.is_named:
            DirectoryOwner(self.staging.store, self.staging.directory).claim(owner)

    def load(self, names: tuple[str, ...]) -> pa.Table:
        """The rows of these transactions; without columns if none are left."""
        tables = [self._read(name) for name in names if self._is_there(name)]
        return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})

    def _read(self, name: str) -> pa.Table:
        return Encoding.ARROW.decode(self.staging.store.read(self.staging.url(name)))

    def _is_there(self, name: str) -> bool:
        url = self.staging.url(name)
        if self.staging.store.exists(url):
            return True
        parsed = transaction_names.parse(name)
        if parsed is None or parsed.token != self.token:
            return False
        raise JobRejected(
            f"the driver does not find {url}, which a slot has written",
            "driver and slot do not share this directory",
            'set option("path", ...) to a path that all machines reach, such as '
            "s3://bucket/directory",
        )
