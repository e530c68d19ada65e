"""A real Spark, started once, with workers that find the packages."""

from collections.abc import Iterator

import pytest

from weir.spark import WeirSession


@pytest.fixture(scope="session")
def session() -> Iterator[WeirSession]:
    session = WeirSession.builder.appName("tests").config("weir.parallelism", 1).getOrCreate()
    yield session
    session.stop()
