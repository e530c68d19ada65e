"""A fake job for tests of the API: it shows given values and records the commands to it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from weir.api.report import CheckpointReport, JobPhase, JobReport
from weir.errors import JobRejected
from weir.rest.checkpoint_statistics import (
    Alignment,
    AlignmentSpread,
    Checkpoint,
    CheckpointDetails,
    CheckpointingSettings,
    CheckpointStatistics,
    CheckpointStatus,
    Counts,
    Externalization,
    Latest,
    Phases,
    PhaseSpreads,
    Restored,
    Share,
    Spread,
    SubtaskPart,
    Summary,
    TaskDetails,
    TaskSummary,
)
from weir.rest.commands import Command, RequestState, RequestStatus
from weir.rest.job_overview import Edge, Graph, Operator, Overview, Slots, Subtask
from weir.rest.server import HERE, ListenAddress, RestServer

TOKEN = "a-token-that-must-never-be-seen"  # noqa: S105 - opens nothing but the tests' own servers

NUMBERS = Share(
    status=CheckpointStatus.COMPLETED,
    latest_ack_timestamp=1_250,
    checkpointed_size=2_048,
    state_size=4_096,
    end_to_end_duration=250,
    processed_data=512,
    persisted_data=128,
    num_subtasks=2,
    num_acknowledged_subtasks=2,
)


def a_checkpoint(number: int, *, is_savepoint: bool = False) -> Checkpoint:
    kind = "savepoint" if is_savepoint else "chk"
    return Checkpoint(
        **NUMBERS.model_dump(),
        id=number,
        is_savepoint=is_savepoint,
        checkpoint_type="SAVEPOINT" if is_savepoint else "CHECKPOINT",
        trigger_timestamp=1_000,
        external_path=f"file:///data/orders/{kind}-{number}",
    )


def a_failed_checkpoint(number: int) -> Checkpoint:
    failure = {
        "status": CheckpointStatus.FAILED,
        "external_path": None,
        "failure_timestamp": 1_900,
        "failure_message": "CHECKPOINT_EXPIRED: the checkpoint did not complete",
    }
    return a_checkpoint(number).model_copy(update=failure)


def a_subtask(index: int) -> Subtask:
    return Subtask(
        index=index,
        slot=f"slot-{index}",
        rows_in=1_000,
        rows_out=10,
        busy_ms=400,
        is_back_pressured=index == 1,
        watermark=5_000 if index == 0 else None,
    )


def an_operator(name: str) -> Operator:
    return Operator(
        id=name,
        name=f"the {name}",
        parallelism=2,
        max_parallelism=128,
        steps=("filter(value > 3)",),
        subtasks=(a_subtask(0), a_subtask(1)),
    )


def one_spread() -> Spread:
    return Spread.of([1, 3])


@dataclass
class FakeJobView:
    """A ``JobView`` without a job. Requests end when the test says so."""

    name: str = "orders"
    status: str = "RUNNING"
    is_over: bool = False
    history: tuple[Checkpoint, ...] = (
        a_failed_checkpoint(9),
        a_checkpoint(8, is_savepoint=True),
        a_checkpoint(7),
    )
    orders: list[Command] = field(default_factory=list)
    ordered: threading.Event = field(default_factory=threading.Event)
    outcome: RequestState | None = None
    """What becomes of every request; none: it goes on and on."""
    refusal: JobRejected | None = None
    reports: int = 0
    """How often it was asked for one."""
    _keys: dict[str, Command] = field(default_factory=dict)

    def forget(self) -> None:
        """Be as new."""
        vars(self).update(vars(FakeJobView()))

    def overview(self) -> Overview:
        return Overview(
            name=self.name,
            status=self.status,
            is_over=self.is_over,
            parallelism=2,
            directory="file:///data/orders",
            slots=Slots(registered=2, missing=0),
            restarts=3,
            last_failure="Slot slot-1 is lost",
        )

    def graph(self) -> Graph:
        edge = Edge(id="e", source="words", target="sums", kind="hash")
        return Graph(operators=(an_operator("words"), an_operator("sums")), edges=(edge,))

    def settings(self) -> CheckpointingSettings:
        return CheckpointingSettings(
            mode="exactly_once",
            interval=1_000,
            timeout=600_000,
            min_pause=0,
            max_concurrent=1,
            externalization=Externalization(enabled=True, delete_on_cancellation=False),
            state_backend="hashmap",
            checkpoint_storage="file:///data/orders",
            unaligned_checkpoints=False,
            tolerable_failed_checkpoints=0,
            aligned_checkpoint_timeout=0,
            checkpoints_after_tasks_finish=True,
        )

    def checkpoints(self) -> CheckpointStatistics:
        done = [c for c in self.history if c.status is CheckpointStatus.COMPLETED]
        failed = [c for c in self.history if c.status is CheckpointStatus.FAILED]
        path = "file:///data/orders/chk-6"
        return CheckpointStatistics(
            counts=Counts(
                restored=1,
                total=len(self.history),
                in_progress=0,
                completed=len(done),
                failed=len(failed),
            ),
            summary=Summary(
                checkpointed_size=one_spread(),
                state_size=one_spread(),
                end_to_end_duration=one_spread(),
                processed_data=one_spread(),
                persisted_data=one_spread(),
            ),
            latest=Latest(
                completed=next((c for c in done if not c.is_savepoint), None),
                savepoint=next((c for c in done if c.is_savepoint), None),
                failed=next(iter(failed), None),
                restored=Restored(
                    id=6, restore_timestamp=900, is_savepoint=False, external_path=path
                ),
            ),
            history=self.history,
        )

    def checkpoint(self, checkpoint: int) -> CheckpointDetails | None:
        found = [c for c in self.history if c.id == checkpoint]
        tasks = {"words": NUMBERS, "sums": NUMBERS}
        return CheckpointDetails(**found[0].model_dump(), tasks=tasks) if found else None

    def task(self, checkpoint: int, operator: str) -> TaskDetails | None:
        if self.checkpoint(checkpoint) is None or operator not in ("words", "sums"):
            return None
        part = SubtaskPart(
            index=0,
            ack_timestamp=1_250,
            end_to_end_duration=250,
            checkpointed_size=1_024,
            state_size=2_048,
            checkpoint=Phases(sync=2, async_=40),
            alignment=Alignment(processed=512, persisted=128, duration=7),
            start_delay=1,
        )
        summary = TaskSummary(
            checkpointed_size=one_spread(),
            state_size=one_spread(),
            end_to_end_duration=one_spread(),
            checkpoint_duration=PhaseSpreads(sync=one_spread(), async_=one_spread()),
            alignment=AlignmentSpread(
                processed=one_spread(), persisted=one_spread(), duration=one_spread()
            ),
            start_delay=one_spread(),
        )
        return TaskDetails(**NUMBERS.model_dump(), id=checkpoint, summary=summary, subtasks=(part,))

    def report(self) -> JobReport:
        self.reports += 1
        newest = CheckpointReport(id=7, path="file:///data/orders/chk-7", completed_at_ms=1_350)
        return JobReport(attempt=4, phase=JobPhase(self.status), newest=newest, restarts=3)

    def order(self, order: Command, key: str) -> str:
        if self.refusal is not None:
            raise self.refusal
        request = key or f"request-{len(self._keys)}"
        if request not in self._keys:
            self._keys[request] = order
            self.orders.append(order)
            self.ordered.set()
        return request

    def request(self, request: str) -> RequestState | None:
        if request not in self._keys:
            return None
        if self.outcome is None:
            return RequestState(id=request, status=RequestStatus.IN_PROGRESS)
        return self.outcome.model_copy(update={"id": request})


def completed(location: str, checkpoint: int = 8) -> RequestState:
    return RequestState(
        id="", status=RequestStatus.COMPLETED, location=location, checkpoint=checkpoint
    )


def failed(reason: str, message: str) -> RequestState:
    return RequestState(id="", status=RequestStatus.FAILED, reason=reason, message=message)


@contextmanager
def served(job: FakeJobView, place: ListenAddress = HERE) -> Iterator[RestServer]:
    server = RestServer(job, TOKEN, place)
    server.start()
    try:
        yield server
    finally:
        server.close()
