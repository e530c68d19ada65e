"""Prints the seed with every test, so that a failure can be repeated."""

import pytest

from chance import SEED


@pytest.fixture(autouse=True)
def shown_seed() -> None:
    print(f"WEIR_SEED={SEED}")  # noqa: T201 - pytest shows it with a failure
