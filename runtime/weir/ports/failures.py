"""What a slot is told when the user's code fails, in words that lead to the line and the row.

The exception that the user's code raised is the cause of this one, so a traceback ends where the
mistake is. Both fields are text that is short enough for a log line and a dashboard.
"""

from weir.errors import Unavailable


class UserCodeFailed(Exception):
    """Code that we were given raised, or gave back what its declaration does not allow."""

    def __init__(self, doing: str, row: str) -> None:
        """Keep both as arguments, so that a copy made by pickle is whole."""
        super().__init__(doing, row)
        self.doing = doing
        """What was called, for which key."""
        self.row = row
        """What it was called with, cut to a readable length."""

    def __str__(self) -> str:
        cause = f": {type(self.__cause__).__name__}: {self.__cause__}" if self.__cause__ else ""
        return f"{self.doing} failed at {self.row}{cause}"


_OF_THE_PROGRAM = (
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
"""Errors of the operating system that come again whenever the same is tried."""


def error_of(problem: BaseException) -> str:
    """The type of what was raised, by which the same failure is recognised when it comes again.

    Empty if time may heal it: a connection, a timeout, a device or a service that is away, also
    where another exception was raised from it.
    """
    raised: BaseException | None = problem
    while raised is not None:
        if isinstance(raised, Unavailable):
            return ""
        if isinstance(raised, OSError) and not isinstance(raised, _OF_THE_PROGRAM):
            return ""
        raised = raised.__cause__ or (None if raised.__suppress_context__ else raised.__context__)
    cause = problem.__cause__ if isinstance(problem, UserCodeFailed) else None
    return type(cause or problem).__name__


def in_words(problem: BaseException) -> str:
    """For a person: what the user's code was doing, or what was raised."""
    if isinstance(problem, UserCodeFailed):
        return str(problem)
    return f"{type(problem).__name__}: {problem}"
