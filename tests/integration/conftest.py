"""Prints the seed with every test, so that a failure can be repeated."""

import pytest

from random_seed import SEED, show


@pytest.fixture(autouse=True)
def _shown_seed() -> None:
    show(f"WEIR_SEED={SEED}")
