"""One long Spark job whose tasks are the slots.

When a slot's process dies, Spark starts its task again, any number of times. The Spark job ends
when every task has returned, which happens when the driver stops the slots. The tasks hold their
cores until then, in a separate pool, so that Spark's other jobs get the cores that are left (spec
R3).
"""

import logging
import os
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark import RDD, SparkContext, TaskContext
from pyspark.errors import PySparkException
from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

from weir.slot.slot_process import SlotSetting, host_subtasks

log = logging.getLogger("weir.spark")

POOL = "weir-slots"

SLOT_CORES = "spark.weir.slotCores"
"""How many of an executor's cores a slot holds; those left over are for Spark's other jobs.
A local machine has spare cores beside its slots. Executors are sized to fit, so there a slot counts
for two cores and each executor has one more: a slot does not fit into it, but another task does."""


@dataclass(frozen=True, slots=True)
class SlotTask:
    """What each task of the slot job does. It travels by pickle, with the job's graph in it."""

    setting: SlotSetting

    def __call__(self, index: int, rows: Iterable[int]) -> Iterable[int]:
        del rows
        context = TaskContext.get()
        assert context is not None, "slots run inside Spark tasks"
        host_subtasks(self.setting, executor_name(), context.taskAttemptId())
        return (index,)


def executor_name() -> str:
    """One name for all slots of an executor: they share its fate."""
    return f"{socket.gethostname()}-{os.getppid()}"


class SparkSlots:
    """The slot job of one submission."""

    def __init__(self, spark: SparkContext, group: str) -> None:
        self._spark = spark
        self._group = group
        self._thread: threading.Thread | None = None
        self._is_over = False

    def start(self, setting: SlotSetting, count: int) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(SlotTask(setting), count), name="weir-slot-job", daemon=True
        )
        self._thread.start()

    def _run(self, task: SlotTask, count: int) -> None:
        self._spark.setJobGroup(self._group, "Weir slots", interruptOnCancel=True)
        self._spark.setLocalProperty("spark.scheduler.pool", POOL)
        try:
            places = self._holding_cores(self._spark.parallelize(range(count), count))
            places.mapPartitionsWithIndex(task).count()
        except (Py4JError, PySparkException) as problem:
            if not self._is_over:
                log.critical("Spark ended the slots: %s", str(problem).splitlines()[0])

    def _holding_cores(self, places: RDD[int]) -> RDD[int]:
        cores = self._spark.getConf().get(SLOT_CORES)
        if cores is None:
            return places
        wanted = TaskResourceRequests().cpus(int(cores))
        return places.withResources(ResourceProfileBuilder().require(wanted).build)

    def kill(self, task_attempt: int, why: str) -> None:
        """End a task that does not listen any more; Spark starts it again."""
        log.warning("Ending task attempt %s: %s", task_attempt, why)
        jvm_context = self._spark._jsc.sc()  # noqa: SLF001 - PySpark has no other way to a task
        with suppress(Py4JError):
            jvm_context.killTaskAttempt(task_attempt, True, why)  # noqa: FBT003 - a JVM method

    def stop(self, patience: float) -> None:
        """Wait until all tasks have returned, then cancel those that have not."""
        self._is_over = True
        if self._thread is not None:
            self._thread.join(patience)
            if self._thread.is_alive():
                self._spark.cancelJobGroup(self._group)
