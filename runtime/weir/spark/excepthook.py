"""Prints an uncaught error of Weir as a message instead of a traceback.

``weir run`` does so by itself; this is for ``python job.py``. Such an error names the problem, the
cause and the remedy; beside them only the line of the script matters. Any other exception is a
mistake in the script, or in Weir, and keeps its traceback.
"""

import logging
import sys
import traceback
from types import TracebackType

from weir.errors import WeirError, terminal_lines
from weir.ports.user_code_errors import user_frames


class PlainErrorHook:
    """A ``sys.excepthook``, which Python calls for an uncaught exception."""

    def __init__(self) -> None:
        self._otherwise = sys.excepthook

    def __call__(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, WeirError):
            self._otherwise(kind, error, trace)
            return
        if logging.getLogger("weir").isEnabledFor(logging.DEBUG):
            traceback.print_exception(kind, error, trace)
        place = "".join(user_frames(error)[-1:])
        sys.stderr.write("\n".join(terminal_lines(error, place)) + "\n")


def install_excepthook() -> None:
    """Install the hook in this process; a second call changes nothing."""
    if not isinstance(sys.excepthook, PlainErrorHook):
        sys.excepthook = PlainErrorHook()
