"""How commands stderr_console to people: on standard error, and without a trace of what is no mistake."""

import functools
from collections.abc import Callable
from typing import ParamSpec

import typer
from rich.console import Console

from weir.errors import WeirError, terminal_lines

P = ParamSpec("P")


def stderr_console() -> Console:
    """Standard error as it is at this moment."""
    return Console(stderr=True)


def with_plain_errors(command: Callable[P, None]) -> Callable[P, None]:
    """A command that shows the problem, the cause and the remedy of an error, a line each."""

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
    """As it stands: whatever looks like markup in it is somebody's text."""
    stderr_console().print(text, style=style, soft_wrap=True, highlight=False, markup=False)
