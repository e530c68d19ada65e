"""Python data sources on real Spark processes; the judge is what the outside has recorded."""

from collections import Counter
from itertools import pairwise

from counter_to_ledger import ledger_job
from faults import Fault, FaultKind, Moment, Step


def finish(job, driver):
    """Wait until the ledger holds the last number, then end the job with a savepoint."""
    last = job.limit - 1
    job.until("the last number", lambda: any(number == last for _, number in job.numbers))
    job.until("every number", lambda: len({n for _, n in job.numbers}) == job.limit)
    job.until("the source is notified", lambda: job.offsets and job.offsets[-1] == job.limit)
    driver.tell(do="stop", path="", drain=False)
    assert driver.until_ended()["problem"] == ""


def test_a_job_between_data_sources_is_exactly_once_though_slots_and_drivers_die(tmp_path):
    """D1, R5, C19: the ledger knows a repeated commit by its number."""
    with ledger_job(tmp_path, is_idempotent=True) as job:
        driver = job.start()
        job.until("the first commit", lambda: job.batches)
        job.inject(Fault(1, Step.UPLOAD, Moment.AFTER, FaultKind.KILL_SLOT))
        successor = job.prepare()
        job.until_checkpoints()
        job.inject(Fault(2, Step.RECORD, Moment.BEFORE, FaultKind.KILL_DRIVER))
        driver.until_dead()
        finish(job, job.start(successor))
        assert sorted(number for _, number in job.numbers) == list(range(job.limit))
        assert sorted(set(job.batches)) == list(range(max(job.batches) + 1))
        assert all(before <= after for before, after in pairwise(job.offsets))


def test_a_ledger_that_does_not_look_at_the_number_gets_the_commit_in_doubt_twice(tmp_path):
    """R5: and nothing else, whatever dies."""
    with ledger_job(tmp_path, is_idempotent=False) as job:
        driver = job.start()
        successors = [job.prepare(), job.prepare()]
        job.until("the first commit", lambda: job.batches)
        job.inject(Fault(1, Step.RECORD, Moment.BEFORE, FaultKind.KILL_DRIVER))
        driver.until_dead()
        in_doubt = job.batches[-1]
        second = job.start(successors[0])
        job.until("the next commit", lambda: job.batches[-1] > in_doubt)
        job.inject(Fault(2, Step.COMMIT, Moment.AFTER, FaultKind.KILL_DRIVER))
        second.until_dead()
        finish(job, job.start(successors[1]))
        times = Counter(number for _, number in job.numbers)
        twice = {number for number, seen in times.items() if seen == 2}
        assert twice == {number for batch, number in job.numbers if batch == in_doubt}
        assert set(times) == set(range(job.limit))
        assert set(times.values()) == {1, 2}
        assert [batch for batch, seen in Counter(job.batches).items() if seen > 1] == [in_doubt]
