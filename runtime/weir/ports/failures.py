"""What a slot is told when the user's code fails, in words that lead to the line and the row.

The exception that the user's code raised is the cause of this one, so a traceback ends where the
mistake is. Both fields are text that is short enough for a log line and a dashboard.
"""


def reason_of(problem: BaseException) -> str:
    """What a problem says, with its type where that alone tells what happened.

    A panic of native code (PyO3's ``PanicException``) and ``sys.exit`` are no ``Exception``. Code
    that must answer for whatever is raised catches ``BaseException`` and reports this.
    """
    return (
        str(problem) if isinstance(problem, Exception) else f"{type(problem).__name__}: {problem}"
    )


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
