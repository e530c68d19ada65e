"""What Prometheus reads of a job."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

from fake_job_view import FakeJobView, served

JOB_NAMES = {
    "lastCheckpointDuration",
    "lastCheckpointSize",
    "lastCheckpointFullSize",
    "lastCheckpointProcessedData",
    "lastCheckpointPersistedData",
    "lastCompletedCheckpointId",
    "lastCheckpointExternalPath",
    "lastCheckpointRestoreTimestamp",
    "lastCheckpointCompletedTimestamp",
    "numberOfInProgressCheckpoints",
    "numberOfCompletedCheckpoints",
    "numberOfFailedCheckpoints",
    "totalNumberOfCheckpoints",
    "numRestarts",
}
TASK_NAMES = {
    "numRecordsIn",
    "numRecordsOut",
    "busyTimeMs",
    "isBackPressured",
    "currentOutputWatermark",
    "numLateRecordsDropped",
    "checkpointAlignmentTime",
    "checkpointStartDelayNanos",
}


def scraped(job):
    with served(job) as server:
        text = httpx.get(f"{server.url}/metrics").text
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_names_are_those_of_flink():
    """U1: a dashboard made for Flink needs another prefix and nothing else."""
    names = {sample[0] for sample in scraped(FakeJobView())}

    assert {f"weir_job_{name}" for name in JOB_NAMES} <= names
    assert {f"weir_task_{name}" for name in TASK_NAMES} <= names


def test_every_sample_names_its_job():
    """U1: many drivers are scraped into one database."""
    assert all(("job", "orders") in labels for _, *labels in scraped(FakeJobView()))


def test_the_figures_are_those_of_the_newest_completed_checkpoint():
    """U1: id, duration and path agree with each other."""
    samples = scraped(FakeJobView())
    job = ("job", "orders")

    assert samples["weir_job_lastCompletedCheckpointId", job] == 7
    assert samples["weir_job_lastCheckpointDuration", job] == 250
    path = ("path", "file:///data/orders/chk-7")
    assert samples["weir_job_lastCheckpointExternalPath", job, path] == 1
    assert samples["weir_job_lastCheckpointProcessedData", job] == 512
    assert samples["weir_job_lastCheckpointPersistedData", job] == 128


def test_a_subtask_tells_how_long_its_last_barriers_took_in_flinks_unit():
    """U1, A2: nanoseconds, of the newest completed checkpoint; absent for who had no part in it."""
    samples = scraped(FakeJobView())
    found = {
        sample: value for sample, value in samples.items() if sample[0].startswith("weir_task")
    }
    alignments = {s[2:]: v for s, v in found.items() if s[0] == "weir_task_checkpointAlignmentTime"}
    delays = {s[2:]: v for s, v in found.items() if s[0] == "weir_task_checkpointStartDelayNanos"}

    assert set(alignments.values()) == {7_000_000}
    assert set(delays.values()) == {1_000_000}
    assert {dict(labels)["subtask_index"] for labels in alignments} == {"0"}


def test_a_figure_that_does_not_exist_yet_is_absent():
    """U1: no invented zeros before the first checkpoint, nor for a subtask without event time."""
    samples = scraped(FakeJobView(history=()))
    names = [sample[0] for sample in samples]

    assert "weir_job_lastCheckpointDuration" not in names
    assert names.count("weir_task_currentOutputWatermark") == 2
    assert names.count("weir_task_numRecordsIn") == 4
