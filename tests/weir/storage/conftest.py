"""Places to store things in: a directory, a bucket of a real S3, and this process's memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from seaweed import Seaweed, seaweed

if TYPE_CHECKING:
    from weir.storage.stores import ObjectStore


def store_for(url: str, options: Mapping[str, object] | None = None) -> "ObjectStore":
    """Imports stores late: a bug is planted in one after this module is read."""
    from weir.storage import stores  # noqa: PLC0415

    return stores.store_for(url, options)


@dataclass(frozen=True)
class Place:
    """A store, and a directory in it for this test alone."""

    store: "ObjectStore"
    directory: str

    def url(self, name: str) -> str:
        return f"{self.directory}/{name}"


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    with seaweed(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture(scope="session")
def s3_store(s3_server: Seaweed) -> "ObjectStore":
    return store_for(f"s3://{s3_server.bucket}", s3_server.options())


@pytest.fixture
def in_files(tmp_path: Path) -> Place:
    return Place(store_for("file://"), f"file://{tmp_path}/jobs/j1")


@pytest.fixture
def in_s3(s3_server: Seaweed, s3_store: "ObjectStore") -> Place:
    return Place(s3_store, f"s3://{s3_server.bucket}/{uuid4().hex}")


@pytest.fixture
def in_memory() -> Place:
    return Place(store_for("memory://"), "memory://j1")


@pytest.fixture(params=["in_files", "in_s3", "in_memory"])
def place(request: pytest.FixtureRequest) -> Place:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Place)
    return found
