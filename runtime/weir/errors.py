"""The errors of Weir, sorted by who must act.

WeirError
├── JobRejected        the user must change something: bad configuration, incompatible savepoint
├── Unavailable        a retry may help: storage, network, API server; carries retry_after
└── Fenced             a newer driver owns this job: stop quietly, touch nothing
AssertionError         we are wrong: end the attempt, keep the trace, catch at the process edge only

An error has three parts: the problem, its cause and the remedy. They stay apart until an edge
(terminal, REST, condition, log) shows them, and the layout of the text is decided in this module
alone. A part is a clause without a period at its end; it may begin with a lower-case letter.

Each process maps these classes to what it does about them in one place. A late ack or a lost race
is none of them: it is an outcome, and the core returns it.
"""

from collections.abc import Sequence
from typing import TypeVar

E = TypeVar("E", bound="WeirError")


class WeirError(Exception):
    """The root, for the process edge; only its subclasses are raised."""

    def __init__(self, problem: str, cause: str = "", remedy: str = "") -> None:
        """Keep the three parts; an empty part is not shown."""
        super().__init__(problem, cause, remedy)
        self.problem = problem
        self.cause = cause
        self.remedy = remedy

    @property
    def parts(self) -> tuple[str, str, str]:
        return self.problem, self.cause, self.remedy

    def __str__(self) -> str:
        return sentence(*self.parts)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the parts themselves: a subclass may have a constructor with other arguments."""
        return _unpickled, (type(self), self.args), self.__dict__


class JobRejected(WeirError):
    """The user must change something, so there is always a cause and a remedy."""

    def __init__(self, problem: str, cause: str, remedy: str) -> None:
        super().__init__(problem, cause, remedy)

    def prefixed(self, subject: str) -> "JobRejected":
        """The same refusal, with the thing that it is about named first."""
        return JobRejected(f"{subject}: {self.problem}", self.cause, self.remedy)


class Unavailable(WeirError):
    """Time may heal it: the same call can succeed later."""

    def __init__(
        self, problem: str, cause: str = "", remedy: str = "", *, retry_after: float
    ) -> None:
        """Ask for another try in ``retry_after`` seconds, as HTTP's header of that name does."""
        super().__init__(problem, cause, remedy)
        self.retry_after = retry_after


class Fenced(WeirError):
    """A newer driver owns this job. Code that sees this stops and deletes nothing."""


def reject_all(subject: str, refusals: Sequence[JobRejected]) -> JobRejected:
    """One refusal for all of them: itself if it is the only one, else a list with a line each."""
    if len(refusals) == 1:
        return refusals[0]
    return JobRejected(
        f"{subject} has {len(refusals)} problems",
        "\n".join(str(refusal) for refusal in refusals),
        "correct each of them",
    )


def sentence(problem: str, cause: str, remedy: str) -> str:
    """The three parts as text for a log, an Event, a condition or an exception's message."""
    is_list = "\n" in cause
    text = _joined(problem, ":\n" if is_list else ": ", cause)
    if not remedy:
        return text
    separator = "\n" if is_list else " "
    return f"{_ended(text)}{separator}{remedy_line(remedy)}"


def terminal_lines(error: WeirError, place: str = "") -> list[str]:
    """The three parts as lines for a terminal, with the user's line of code after the cause."""
    lines = [f"Error: {_ended(error.problem)}"]
    if error.cause:
        separator = "\n" if "\n" in error.cause else " "
        lines.append(f"Cause:{separator}{_ended(error.cause)}")
    if place:
        lines.append(f"  at {place}")
    if error.remedy:
        lines.append(remedy_line(error.remedy))
    return lines


def remedy_line(remedy: str) -> str:
    return f"Remedy: {_ended(remedy)}"


def _joined(first: str, separator: str, second: str) -> str:
    return f"{first}{separator}{second}" if second else first


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _unpickled(kind: type[E], parts: tuple[str, ...]) -> E:
    return kind.__new__(kind, *parts)
