"""Processes of the operating system, as far as a test starts, looks for and ends its own.

Every driver is started in a separate session. Spark's JVM, its Python daemon and the slots stay
in that session whatever process groups they make, so one number finds them all.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path


def of_session(session: int) -> list[int]:
    """The processes of a session that are alive, in the order of their numbers."""
    found = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())
    return sorted(pid for pid in found if _session_of(pid) == session)


def is_alive(pid: int) -> bool:
    return _session_of(pid) is not None


def parent_of(pid: int) -> int:
    return int(_fields(pid)[1])


def is_frozen(pid: int) -> bool:
    return _fields(pid)[:1] == ["T"]


def end_session(session: int) -> None:
    for pid in of_session(session):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _session_of(pid: int) -> int | None:
    """None if it is gone, or only waits for its parent to notice."""
    fields = _fields(pid)
    return None if not fields or fields[0] == "Z" else int(fields[3])


def _fields(pid: int) -> list[str]:
    """State, parent, group and session, which follow the command's name in parentheses."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()
