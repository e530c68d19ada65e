"""Gives pytest an option to accept what has changed on purpose."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what the code says now into the stories, instead of comparing",
    )
