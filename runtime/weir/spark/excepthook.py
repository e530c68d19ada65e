"""Shows an error of Weir that ends a script as a message, without a trace of Weir's own calls.

``weir run`` does so by itself; this is for ``python job.py``. Such an error names the thing, the
cause and the remedy, and the only line that matters beside them is the script's own. Any other
exception is a mistake in the script, or in Weir, and keeps its whole trace.
"""

import logging
import sys
import traceback
from types import TracebackType

from weir.errors import WeirError, terminal_lines
from weir.ports.user_code_errors import user_frames


class PlainErrorHook:
    """What Python calls for an exception that nothing has caught."""

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
    """From now on, in this process; a second call changes nothing."""
    if not isinstance(sys.excepthook, PlainErrorHook):
        sys.excepthook = PlainErrorHook()
