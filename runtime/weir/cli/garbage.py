"""Lists the unreferenced files in a job's directory, and deletes them after the user has agreed."""

import time
from dataclasses import dataclass, replace

from rich.box import SIMPLE_HEAD
from rich.table import Table

from weir.api.config_problem import InvalidValue
from weir.api.duration import parse_duration
from weir.cli import number_format
from weir.core.ids import Millis
from weir.errors import JobRejected
from weir.storage import garbage_collection
from weir.storage.garbage_collection import StorageScan
from weir.storage.object_store import ObjectStore
from weir.storage.store_by_scheme import StoreByScheme


@dataclass(frozen=True, slots=True)
class Garbage:
    """The unreferenced files that were found."""

    store: ObjectStore
    scan: StorageScan
    sizes: dict[str, int]
    """By URL, in the order of deletion."""

    @property
    def summary(self) -> str:
        epoch, total = self.scan.epoch, sum(self.sizes.values())
        broken = sum(url in self.scan.unfinished for url in self.sizes)
        return (
            f"{len(self.sizes)} files, {number_format.size(total)}, have no reference:"
            f" {len(self.sizes) - broken} of epochs before {epoch}, {broken} of interrupted writes."
        )

    def table(self) -> Table:
        table = Table("file", box=SIMPLE_HEAD)
        table.columns[0].overflow = "fold"
        table.add_column("size", justify="right")
        for url, size in self.sizes.items():
            table.add_row(url.removeprefix(f"{self.scan.directory}/"), number_format.size(size))
        return table

    def delete(self) -> None:
        garbage_collection.collect(self.store, self.scan, self.sizes)


def find_garbage(directory: str, older_than: str) -> Garbage:
    store = StoreByScheme()
    found = garbage_collection.scan(store, directory.rstrip("/"))
    now = Millis(time.time_ns() // 1_000_000)
    unwanted, abandoned = (
        garbage_collection.unreferenced(found),
        garbage_collection.abandoned(found, now),
    )
    if older_than:
        before = Millis(now - _age(older_than))
        found = replace(found, changed_at=garbage_collection.written_at(unwanted))
        unwanted = garbage_collection.unreferenced(found, before)
        abandoned = tuple(url for url in abandoned if found.unfinished[url] < before)
    unwanted += abandoned
    return Garbage(store, found, {url: store.size(url) for url in unwanted})


def _age(text: str) -> int:
    try:
        return parse_duration(text)
    except InvalidValue as problem:
        raise JobRejected(
            f"--older-than {text} is not a duration",
            problem.reason,
            problem.remedy,
        ) from problem
