"""Prints messages and errors on standard error, without a traceback for expected errors."""

import functools
from collections.abc import Callable
from typing import ParamSpec

import typer
from rich.console import Console

from weir.errors import WeirError, terminal_lines

P = ParamSpec("P")


def stderr_console() -> Console:
    """A console on the current standard error."""
    return Console(stderr=True)


def with_plain_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command to print the problem, cause and remedy of an error, one line each."""

    @functools.wraps(command)
    def plain(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except WeirError as problem:
            first, *rest = terminal_lines(problem)
            print_message(first, style="red")
            for line in rest:
                print_message(line)
            raise typer.Exit(1) from problem

    return plain


def print_message(text: str, style: str = "") -> None:
    """Print the text as it is, without interpreting markup in it."""
    stderr_console().print(text, style=style, soft_wrap=True, highlight=False, markup=False)
