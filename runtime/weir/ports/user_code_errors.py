"""Describes an error of user code by the failing line and row.

The exception that the user's code raised is the cause of this one, so a traceback ends where the
error is. A slot's traceback stays in the log of its executor, so the description names the user's
own lines too: not those of Weir, of Spark or of a library, which the user did not write. The text
is short enough for a log line and a dashboard.
"""

import sysconfig
from traceback import walk_tb

from weir.errors import Unavailable, WeirError

MOST_FRAMES = 4
"""The innermost ones are shown."""

_WEIR = __file__.rpartition("ports/")[0]
_PYTHON = sysconfig.get_paths()["stdlib"]
_INSTALLED = ("/site-packages/", "/dist-packages/")
_SPARK = (*(f"{place}pyspark/" for place in _INSTALLED), "/pyspark.zip/")


def user_frames(error: BaseException) -> tuple[str, ...]:
    """The lines of the user's code through which an error came, the innermost last.

    A job that was itself installed as a package is its user's code too, if nothing else is.
    """
    code = ((frame.f_code, line) for frame, line in walk_tb(error.__traceback__))
    outside = [
        (it.co_filename, f"{it.co_filename}:{line} in {it.co_qualname}")
        for it, line in code
        if not it.co_filename.startswith((_WEIR, "<frozen "))
        and not any(place in it.co_filename for place in _SPARK)
        and not (it.co_filename.startswith(_PYTHON) and not _is_installed(it.co_filename))
    ]
    own = [shown for file, shown in outside if not _is_installed(file)]
    return tuple((own or [shown for _, shown in outside])[-MOST_FRAMES:])


def describe_error(error: BaseException) -> str:
    """What was raised and where. A refusal of Weir already contains both.

    Of ``BaseException``, because a panic of native code (PyO3's ``PanicException``) is no
    ``Exception``, and code that must answer for whatever is raised reports this.
    """
    if isinstance(error, WeirError | UserCodeFailed):
        return str(error)
    frames = user_frames(error)
    where = f" (at {', '.join(frames)})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def is_of_user_code(error: BaseException) -> bool:
    """Whether code of the user raised it; a refusal of ours is about something else, as a file."""
    if isinstance(error, WeirError):
        return False
    return isinstance(error, UserCodeFailed) or bool(user_frames(error))


def _is_installed(file: str) -> bool:
    return any(place in file for place in _INSTALLED)


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
        cause = f": {describe_error(self.__cause__)}" if self.__cause__ else ""
        return f"{self.doing} failed at {self.row}{cause}"


_OF_THE_PROGRAM = (
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
"""Errors of the operating system that come again whenever the same is tried."""


def error_type(problem: BaseException) -> str:
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
