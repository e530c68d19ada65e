"""The job's metrics for Prometheus, under Flink's names.

Flink's own reporter shows counts as gauges without the suffix that Prometheus gives to counters.
So do we: a dashboard made for one needs only another prefix for the other. A figure that does not
exist yet is absent.
"""

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from weir.rest.checkpoint_statistics import CheckpointStatistics, SubtaskPart
from weir.rest.job_overview import Graph, Overview, Subtask
from weir.rest.job_view import JobQueries

Figure = tuple[str, str, int | None]
"""Name, description, value."""

Parts = Mapping[tuple[str, int], SubtaskPart]
"""By operator and index."""

NANOS = 1_000_000
"""In a millisecond."""

JOB = "weir_job_"
TASK = "weir_task_"


class JobCollector(Collector):
    """Reads the view at every scrape; nothing is counted here."""

    def __init__(self, view: JobQueries) -> None:
        self._view = view

    def collect(self) -> Iterator[GaugeMetricFamily]:
        overview = self._view.overview()
        checkpoints = self._view.checkpoints()
        for name, text, value in (*_life(overview), *_counts(checkpoints), *_newest(checkpoints)):
            if value is not None:
                family = GaugeMetricFamily(f"{JOB}{name}", text, labels=["job"])
                family.add_metric([overview.name], value)
                yield family
        yield from _path(overview.name, checkpoints)
        yield from _tasks(overview.name, self._view.graph(), self._newest_parts(checkpoints))

    def _newest_parts(self, checkpoints: CheckpointStatistics) -> Parts:
        """What each subtask did for the newest completed checkpoint."""
        newest = checkpoints.latest.completed
        if newest is None:
            return {}
        operators = [operator.id for operator in self._view.graph().operators]
        pages = {operator: self._view.task(newest.id, operator) for operator in operators}
        return {
            (operator, part.index): part
            for operator, page in pages.items()
            if page is not None
            for part in page.subtasks
        }

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing: what there is depends on the job, which may not run yet."""
        return []


def registry_of(view: JobQueries) -> CollectorRegistry:
    """A registry with this job alone, whatever else lives in the process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(JobCollector(view))
    return registry


def _life(overview: Overview) -> tuple[Figure, ...]:
    return (
        ("numRestarts", "Restarts of the job or of a region.", overview.restarts),
        ("numRegisteredSlots", "Slots that are there.", overview.slots.registered),
        ("numMissingSlots", "Slots that the job waits for.", overview.slots.missing),
        ("isRunning", "1 while the status is RUNNING.", int(overview.status == "RUNNING")),
    )


def _counts(checkpoints: CheckpointStatistics) -> tuple[Figure, ...]:
    counts = checkpoints.counts
    return (
        ("totalNumberOfCheckpoints", "Checkpoints triggered.", counts.total),
        ("numberOfInProgressCheckpoints", "Checkpoints under way.", counts.in_progress),
        ("numberOfCompletedCheckpoints", "Checkpoints completed.", counts.completed),
        ("numberOfFailedCheckpoints", "Checkpoints that failed.", counts.failed),
    )


def _newest(checkpoints: CheckpointStatistics) -> tuple[Figure, ...]:
    newest, restored = checkpoints.latest.completed, checkpoints.latest.restored
    restored_at = restored.restore_timestamp if restored else None
    figures: tuple[Figure, ...] = (
        ("lastCheckpointRestoreTimestamp", "When a checkpoint was last restored, ms.", restored_at),
    )
    if newest is None:
        return figures
    return (
        *figures,
        ("lastCompletedCheckpointId", "Of the newest completed one.", newest.id),
        ("lastCheckpointDuration", "Trigger to last ack, ms.", newest.end_to_end_duration),
        ("lastCheckpointFullSize", "Bytes of all state in it.", newest.state_size),
        ("lastCheckpointSize", "Bytes written for it.", newest.checkpointed_size),
        ("lastCheckpointProcessedData", "Bytes taken in while aligning.", newest.processed_data),
        ("lastCheckpointPersistedData", "Bytes that were in flight.", newest.persisted_data),
        ("lastCheckpointCompletedTimestamp", "Its last ack, ms.", newest.latest_ack_timestamp),
    )


def _path(job: str, checkpoints: CheckpointStatistics) -> Iterator[GaugeMetricFamily]:
    newest = checkpoints.latest.completed
    if newest is not None and newest.external_path:
        family = GaugeMetricFamily(
            f"{JOB}lastCheckpointExternalPath",
            "Always 1; the label has the path of the newest completed checkpoint.",
            labels=["job", "path"],
        )
        family.add_metric([job, newest.external_path], 1)
        yield family


def _task_figures(subtask: Subtask, part: SubtaskPart | None) -> tuple[Figure, ...]:
    alignment = part.alignment.duration * NANOS if part else None
    start_delay = part.start_delay * NANOS if part else None
    return (
        ("numRecordsIn", "Rows taken in since the launch.", subtask.rows_in),
        ("numRecordsOut", "Rows given out since the launch.", subtask.rows_out),
        ("busyTimeMs", "Milliseconds at work since the launch.", subtask.busy_ms),
        ("isBackPressured", "1 while an output has no room.", int(subtask.is_back_pressured)),
        ("currentOutputWatermark", "Event time promised downstream, ms.", subtask.watermark),
        ("numLateRecordsDropped", "Rows dropped behind the watermark.", subtask.late_rows),
        ("checkpointAlignmentTime", "Its last alignment, ns.", alignment),
        ("checkpointStartDelayNanos", "Trigger to its first barrier, ns.", start_delay),
    )


def _tasks(job: str, graph: Graph, parts: Parts) -> Iterator[GaugeMetricFamily]:
    families: dict[str, GaugeMetricFamily] = {}
    for operator in graph.operators:
        for subtask in operator.subtasks:
            labels = [job, operator.id, operator.name, str(subtask.index)]
            part = parts.get((operator.id, subtask.index))
            for name, text, value in _task_figures(subtask, part):
                family = families.setdefault(name, _task_family(name, text))
                if value is not None:
                    family.add_metric(labels, value)
    yield from families.values()


def _task_family(name: str, text: str) -> GaugeMetricFamily:
    labels = ["job", "operator", "task_name", "subtask_index"]
    return GaugeMetricFamily(f"{TASK}{name}", text, labels=labels)
