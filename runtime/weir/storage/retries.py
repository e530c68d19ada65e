"""Retries a storage that is unavailable until it answers.

A starting job needs its program and its log before anything else. If the process gave up, it would
only be started again, with growing delays, and its version might count as broken. The pause is a
plain sleep, so that a signal interrupts it in the main thread.

A job that a person starts does not wait as long: storage that has never answered is probably
misconfigured, and the person should see that soon.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from weir.errors import Unavailable, sentence
from weir.storage.object_store import RETRY_AFTER_S, ObjectStore
from weir.storage.s3_store import SCHEMES as S3

log = logging.getLogger("weir.storage")

RETRY_SECONDS = 0.2

SOON_SECONDS = 5.0
SELDOM_SECONDS = 60.0
"""When the first warning is logged, and the longest interval between later warnings."""

AVAILABILITY_TIMEOUT_SECONDS = 30.0
"""Storage that has not answered by then is taken for misconfigured."""

T = TypeVar("T")


def retry_until_available(
    ask: Callable[[], T | None], pause: Callable[[float], None] = time.sleep
) -> T:
    """Call until it returns a value; None means that the answer is not certain yet."""
    logged = ""
    while True:
        try:
            answer = ask()
        except Unavailable as problem:
            if str(problem) != logged:
                log.warning(
                    "The storage is unavailable and is retried until it answers: %s", problem
                )
            logged = str(problem)
            answer = None
        if answer is not None:
            return answer
        pause(RETRY_SECONDS)


@dataclass
class AvailabilityCheck:
    """Checks that a storage answers, by asking for an object that need not exist.

    A thread asks, because one call may hang for long, and for ever on a mount whose server is gone.
    """

    store: ObjectStore
    directory: str
    soon: float = SOON_SECONDS
    _answer: Future[bool] = field(default_factory=Future)
    _gave_up: threading.Event = field(default_factory=threading.Event)
    _problem: str = "it is silent"

    def wait(self, longest: float | None) -> None:
        """For so many seconds at most; None: as long as it takes."""
        threading.Thread(target=self._ask, daemon=True, name="weir-first-answer").start()
        waited, pause = 0.0, self.soon
        while longest is None or waited + pause < longest:
            if self._is_answered(pause):
                return
            waited, pause = waited + pause, min(2 * pause, SELDOM_SECONDS)
            log.warning("%s has not answered for %.0f s: %s", self.directory, waited, self._problem)
        if not self._is_answered(longest - waited):
            self._gave_up.set()
            raise self._timed_out(longest)

    def _is_answered(self, within: float) -> bool:
        try:
            self._answer.result(within)
        except TimeoutError:
            return False
        return True

    def _ask(self) -> None:
        while not self._gave_up.is_set():
            try:
                found = self.store.exists(f"{self.directory}/log/floor")
            except Unavailable as problem:
                self._problem = sentence(problem.problem, problem.cause, "")
                self._gave_up.wait(RETRY_SECONDS)
            except Exception as problem:  # noqa: BLE001 - it is raised where it is waited for
                self._answer.set_exception(problem)
                return
            else:
                self._answer.set_result(found)
                return

    def _timed_out(self, longest: float) -> Unavailable:
        remedy = "check that it is mounted and that its server answers"
        if self.directory.startswith(S3):
            remedy = "check AWS_ENDPOINT_URL, and that this machine reaches it"
        return Unavailable(
            f"the checkpoint storage {self.directory} has not answered for {longest:.0f} s",
            self._problem,
            f"{remedy}; then start the job again",
            retry_after=RETRY_AFTER_S,
        )
