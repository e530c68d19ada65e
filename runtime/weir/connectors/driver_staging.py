"""Carries sealed rows from the slots to the driver, for sinks that live in the driver alone.

Rows wait in staged Arrow files until the driver takes them. Without a path of the user's choice
they wait in the temporary directory of one machine, which is where jobs without a cluster run. What
an earlier driver staged may be gone with it, and then so is whatever would have shown it.
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
    """A place that all slots and the driver reach."""

    url: str
    token: str
    storage: Mapping[str, str] = field(default_factory=dict)
    is_named: bool = False
    """The user named the place, so that another job may have been given the same one."""

    @classmethod
    def at(cls, url: str, storage: Mapping[str, str]) -> Self:
        """A scratch under this URL, or a temporary one if it is empty."""
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
    """The driver's end of a scratch."""

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
