"""A remote script is downloaded, and an unavailable storage is retried."""

import pytest

from failing_s3 import BUCKET, failing_s3
from weir.cli.script_download import local_script
from weir.errors import JobRejected

CONTENT = b"print(42)"


@pytest.fixture
def bucket(monkeypatch):
    with failing_s3() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        yield server


def as_s3(bucket, name):
    return bucket.url(name)


def as_http(bucket, name):
    return f"{bucket.endpoint}/{BUCKET}/{name}"


places = pytest.mark.parametrize("place", [as_s3, as_http])


@places
def test_a_script_whose_storage_is_busy_is_waited_for(bucket, tmp_path, place):
    """R1 K7: a driver that ended would be one more failed start."""
    bucket.objects["jobs/orders.py"] = CONTENT
    bucket.refuse(503, "SlowDown", times=2)

    found = local_script(place(bucket, "jobs/orders.py"), tmp_path)

    assert (found, found.read_bytes()) == (tmp_path / "orders.py", CONTENT)


@places
def test_a_script_that_is_not_there_is_refused_at_once(bucket, tmp_path, place):
    """U3: it will not be there later either."""
    with pytest.raises(JobRejected, match="does not exist"):
        local_script(place(bucket, "gone.py"), tmp_path)


def test_a_script_that_may_not_be_read_is_refused_at_once(bucket, tmp_path):
    """U3: permission is the user's to give."""
    bucket.refuse(403, "AccessDenied", times=2)

    with pytest.raises(JobRejected, match="check the keys"):
        local_script(bucket.url("job.py"), tmp_path)
