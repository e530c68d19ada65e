"""A job's key: from the environment or from a private file."""

import pytest

from weir.connectors.pyspark.pickle_signatures import KEYS, InvalidSignature, JobKey, job_key
from weir.errors import JobRejected

KEY = JobKey(b"k" * 32)


def test_a_key_is_made_once_and_survives_its_maker(tmp_path):
    """X2: the next driver of the job can load what this one has signed."""
    key = job_key("sums", {}, tmp_path)
    assert job_key("sums", {}, tmp_path) == key
    assert job_key("other", {}, tmp_path) != key
    assert (tmp_path / KEYS / "sums").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in sorted((tmp_path / KEYS).iterdir())] == ["other", "sums"]


def test_a_secret_in_the_environment_is_the_key_on_every_machine(tmp_path):
    """X2: no file is needed."""
    key = job_key("sums", {"WEIR_SECRET": "s"}, tmp_path / "one")
    assert job_key("sums", {"WEIR_SECRET": "s"}, tmp_path / "two") == key
    assert job_key("sums", {"WEIR_SECRET": "t"}, tmp_path / "two") != key
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_others_may_use_is_refused(tmp_path):
    """X2, U3."""
    job_key("sums", {}, tmp_path)
    (tmp_path / KEYS / "sums").chmod(0o640)
    with pytest.raises(JobRejected, match=r"others may use it.*chmod 600"):
        job_key("sums", {}, tmp_path)


def test_the_name_of_a_job_cannot_lead_out_of_the_directory(tmp_path):
    """X2."""
    job_key("../../sums", {}, tmp_path)
    assert [path.name for path in (tmp_path / KEYS).iterdir()] == ["..%2F..%2Fsums"]


def test_a_key_is_not_shown():
    """X4."""
    assert "kkkk" not in repr(KEY)


@pytest.mark.parametrize("place", [0, 31, 32, -1])
def test_a_changed_byte_anywhere_is_noticed_before_the_pickle_is_loaded(place):
    """X2."""
    signed = bytearray(KEY.pickled("test", {"a": 1}))
    signed[place] ^= 1
    with pytest.raises(InvalidSignature, match=r"^it was not signed with this job's key"):
        KEY.unpickled("test", bytes(signed), "it")


def test_what_is_signed_for_one_purpose_does_not_serve_another():
    """X2."""
    signed = KEY.pickled("test", 1)
    assert KEY.unpickled("test", signed, "it") == 1
    with pytest.raises(InvalidSignature):
        KEY.unpickled("other", signed, "it")
