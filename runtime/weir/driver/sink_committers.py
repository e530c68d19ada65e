"""Commits sinks' transactions and aborts those of failed attempts, one sink at a time.

Each sink has a separate thread, so commits of one sink keep their order and a slow external
system delays no other. A commit that fails is in doubt and comes again (spec R5, C19), unless it
can never succeed: then the driver ends, with the reason, and the job stays as it is. If the sink's
own code raised, the attempt fails too, and the restart strategy counts it (spec R2).
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from weir.core.coordinator import actions, events
from weir.core.ids import Epoch, OperatorId, SubtaskId
from weir.core.job_master import Event
from weir.errors import Fenced, JobRejected, WeirError
from weir.ports.sinks import ClaimsTarget, Committer, SinkOwner
from weir.ports.user_code_errors import UserCodeFailed, describe_error, error_type
from weir.storage.retries import retry_until_available

log = logging.getLogger("weir.driver")


def _claimed(committer: ClaimsTarget, owner: SinkOwner) -> bool:
    committer.claim(owner)
    return True


class SinkCommitters:
    """The sinks' ends in the driver."""

    def __init__(
        self,
        committers: Mapping[OperatorId, Committer],
        enqueue: Callable[[Event], None],
        fail: Callable[[WeirError], None],
    ) -> None:
        self._committers = committers
        self._enqueue = enqueue
        self._fail = fail
        self._threads = {
            sink: ThreadPoolExecutor(1, thread_name_prefix=f"weir-commit-{sink}")
            for sink in committers
        }

    def claim(self, job: str, commits: Mapping[OperatorId, int], *, may_take_over: bool) -> None:
        """Make each sink's place this job's, before anything happens there."""
        for sink, committer in self._committers.items():
            if isinstance(committer, ClaimsTarget):
                owner = SinkOwner(job, sink, commits.get(sink, 0), may_take_over)
                retry_until_available(partial(_claimed, committer, owner))

    def commit(self, action: actions.CommitTransactions) -> None:
        sink = action.commit.sink
        self._threads[sink].submit(self._commit, action)

    def _commit(self, action: actions.CommitTransactions) -> None:
        commit = action.commit
        names = tuple(transaction.name for transaction in commit.transactions)
        try:
            self._committers[commit.sink].commit(commit.sequence, names)
        except Fenced:
            log.warning("Sink %s belongs to a newer driver now.", commit.sink)
            self._enqueue(events.CommitInDoubt(commit.sink, commit.sequence))
        except JobRejected as problem:
            self._fail(problem)
        except UserCodeFailed as failure:
            why = f"commit {commit.sequence}: {failure}"
            self._enqueue(
                events.CommitInDoubt(commit.sink, commit.sequence, why, error_type(failure))
            )
        except BaseException as problem:  # noqa: BLE001 - connectors, user code, native code
            why = describe_error(problem)
            log.warning("Commit %s of sink %s failed: %s", commit.sequence, commit.sink, why)
            self._enqueue(events.CommitInDoubt(commit.sink, commit.sequence))
        else:
            self._enqueue(events.CommitConfirmed(commit.sink, commit.sequence))

    def resolve(
        self,
        epoch: Epoch,
        action: actions.ResolveTransactions,
        first: Callable[[], None] = lambda: None,
    ) -> None:
        """``first`` waits for what must have ended before."""
        by_sink: dict[OperatorId, list[SubtaskId]] = {}
        for subtask in action.subtasks:
            by_sink.setdefault(subtask.operator, []).append(subtask)
        owner = (int(epoch), int(action.attempt))
        work = [
            (sink, self._committers[sink], tuple(subtasks)) for sink, subtasks in by_sink.items()
        ]
        keep = frozenset(transaction.name for transaction in action.keep)

        def begun() -> list[tuple[OperatorId, Future[None]]]:
            first()
            return [
                (sink, self._threads[sink].submit(committer.resolve, subtasks, owner, keep))
                for sink, committer, subtasks in work
            ]

        waiter = ThreadPoolExecutor(1, thread_name_prefix="weir-resolve")
        waiter.submit(self._await_all, action.operation, begun)
        waiter.shutdown(wait=False)

    def _await_all(
        self, operation: int, begun: Callable[[], list[tuple[OperatorId, Future[None]]]]
    ) -> None:
        sink = OperatorId("")
        try:
            for sink, future in begun():  # noqa: B007 - the last one is the one that raised
                future.result()
        except JobRejected as problem:
            self._fail(problem)
        except UserCodeFailed as failure:
            log.warning("Transactions of an earlier attempt are still open: %s", failure)
            unresolved = events.TransactionsUnresolved(
                operation, sink, str(failure), error_type(failure)
            )
            self._enqueue(unresolved)
        except BaseException as problem:  # noqa: BLE001 - connectors, user code, native code
            log.warning(
                "Transactions of an earlier attempt are still open: %s", describe_error(problem)
            )
            self._enqueue(events.TransactionsUnresolved(operation))
        else:
            self._enqueue(events.TransactionsResolved(operation))

    def close(self) -> None:
        for thread in self._threads.values():
            thread.shutdown(wait=True)
