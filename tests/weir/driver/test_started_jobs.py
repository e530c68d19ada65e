"""Which jobs of a process are known, and when another one is refused."""

import pytest

from managed_scripts import FakeManagedJob
from weir.api.report import JobPhase
from weir.driver.started_jobs import StartedJobs
from weir.errors import JobRejected


def test_a_driver_of_one_job_refuses_a_second_one_by_name():
    """K2: two jobs would share one directory."""
    jobs = StartedJobs()
    jobs.refuse_another("orders-1")
    jobs.add(FakeManagedJob(JobPhase.FINISHED))

    with pytest.raises(JobRejected, match=r"job orders-1 alone.*Remedy"):
        jobs.refuse_another("orders-1")


def test_a_job_that_is_over_is_known_until_the_next_one_starts():
    """K7: its end is still to be reported, and a process may start many."""
    jobs, first, second = StartedJobs(), *(FakeManagedJob(JobPhase.FINISHED) for _ in range(2))
    jobs.add(first)
    first.wait()
    assert jobs.all() == (first,)

    jobs.add(second)
    assert jobs.all() == (second,)
