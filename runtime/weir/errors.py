"""Everything Weir raises on purpose, sorted by who must act.

WeirError
├── JobRejected        the user must change something: bad configuration, incompatible savepoint
├── Unavailable        time may heal it: storage, network, API server; carries retry_after
└── Fenced             a newer driver owns this job: stop quietly, touch nothing
AssertionError         we are wrong: end the attempt, keep the trace, catch at the process edge only

Each process maps these classes to what it does about them in one place. A late ack or a lost race
is none of them: it is an outcome, and the core returns it.
"""


class WeirError(Exception):
    """The root, for the process edge; nobody raises it itself."""


class JobRejected(WeirError):
    """The user must change something. The message names the thing, the reason and the remedy."""


class Unavailable(WeirError):
    """Time may heal it: the same call can succeed later."""

    def __init__(self, message: str, retry_after: float) -> None:
        """Ask for another try in ``retry_after`` seconds, as HTTP's header of that name does."""
        super().__init__(message)
        self.retry_after = retry_after


class Fenced(WeirError):
    """A newer driver owns this job. Whoever sees this stops and deletes nothing."""
