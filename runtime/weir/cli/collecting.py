"""Deletes what nobody refers to in a job's directory, after it was shown and agreed to."""

import time
from dataclasses import dataclass, replace

from rich.box import SIMPLE_HEAD
from rich.table import Table

from weir.api.duration import parse_duration
from weir.api.refusal import Unfit
from weir.cli import figures
from weir.core.ids import Millis
from weir.errors import JobRejected
from weir.storage import collecting
from weir.storage.by_scheme import StoreByScheme
from weir.storage.collecting import Survey
from weir.storage.contract import ObjectStore


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What was found, ready to be deleted."""

    store: ObjectStore
    survey: Survey
    sizes: dict[str, int]
    """By URL, in the order of deletion."""

    @property
    def summary(self) -> str:
        epoch, total = self.survey.epoch, sum(self.sizes.values())
        broken = sum(url in self.survey.unfinished for url in self.sizes)
        return (
            f"{len(self.sizes)} files, {figures.size(total)}, are left and nobody refers to them:"
            f" {len(self.sizes) - broken} by epochs before {epoch}, {broken} by writes that broke"
            " off."
        )

    def table(self) -> Table:
        table = Table("file", box=SIMPLE_HEAD)
        table.columns[0].overflow = "fold"
        table.add_column("size", justify="right")
        for url, size in self.sizes.items():
            table.add_row(url.removeprefix(f"{self.survey.directory}/"), figures.size(size))
        return table

    def delete(self) -> None:
        collecting.collect(self.store, self.survey, self.sizes)


def look_through(directory: str, older_than: str) -> Leftovers:
    store = StoreByScheme()
    found = collecting.survey(store, directory.rstrip("/"))
    now = Millis(time.time_ns() // 1_000_000)
    unwanted, abandoned = collecting.leftovers(found), collecting.abandoned(found, now)
    if older_than:
        before = Millis(now - _age(older_than))
        found = replace(found, changed_at=collecting.written_at(unwanted))
        unwanted = collecting.leftovers(found, before)
        abandoned = tuple(url for url in abandoned if found.unfinished[url] < before)
    unwanted += abandoned
    return Leftovers(store, found, {url: store.size(url) for url in unwanted})


def _age(text: str) -> int:
    try:
        return parse_duration(text)
    except Unfit as problem:
        raise JobRejected(
            f"--older-than {text} is not a duration",
            problem.reason,
            problem.remedy,
        ) from problem
