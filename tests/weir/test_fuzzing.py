"""Whatever arrives from outside, the answer is a value or a clear error: no crash, no hang.

What is fed in is noise, or something valid with noise in it, which gets further.
"""

import json
from contextlib import closing, suppress
from http.client import HTTPConnection

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from coordinated_job import a_manifest
from fake_job_view import TOKEN, FakeJobView, served
from weir.core.barriers import AlignmentType, Barrier
from weir.core.ids import AttemptId, CheckpointId, Millis, OperatorId, SubtaskId
from weir.core.restore_decision import Damaged
from weir.core.snapshots import CheckpointKind, Manifest
from weir.errors import JobRejected
from weir.storage import manifests
from weir.storage.job_log_store import JobLog
from weir.storage.memory_store import MemoryStore
from weir.storage.state_files import DamagedState, fetch, put
from weir.wire.control_messages import SubtaskMessage
from weir.wire.frames import DamagedFrame, FrameReader, header
from weir.wire.json_codec import Undecodable, dumps, loads

NOISE = st.binary(max_size=400)
BARRIER = Barrier(
    CheckpointId(7), CheckpointKind.CHECKPOINT, AlignmentType.ALIGNED, Millis(1), "file:///chk-7"
)
MESSAGE = dumps(SubtaskMessage(SubtaskId(OperatorId("sum"), 1), AttemptId(2), BARRIER))


def spoiled(valid):
    """Something valid with a piece cut out and noise in its place."""
    cuts = st.tuples(st.integers(0, len(valid)), st.integers(0, 20), st.binary(max_size=20))
    return cuts.map(lambda cut: valid[: cut[0]] + cut[2] + valid[cut[0] + cut[1] :])


@given(NOISE | spoiled(MESSAGE))
@example(b"[" * 100_000)
def test_a_control_message_is_read_or_refused(data):
    """X2 X3: nothing that a peer says can do more than that."""
    with suppress(Undecodable):
        loads(data)


@given(NOISE | spoiled(header(1, 5) + b"hello"))
def test_a_stream_of_frames_is_cut_or_refused(data):
    """X3: and an impossible length is refused."""
    reader = FrameReader()
    with suppress(DamagedFrame):
        while data:
            space = reader.space()[: min(7, len(data))]
            space[:], data = data[: len(space)], data[len(space) :]
            reader.filled(len(space))


def test_a_manifest_is_read_or_reported_as_damaged():
    """S8 C18: with the reason."""
    valid = manifests.encode(a_manifest(3))

    @given(NOISE | spoiled(valid) | st.recursive(st.integers(), st.lists).map(json.dumps))
    def check(data):
        content = data.encode() if isinstance(data, str) else data
        found = manifests.decode(content, "file:///chk-3")
        assert isinstance(found, Manifest) or (isinstance(found, Damaged) and found.why)

    check()


@given(NOISE)
def test_an_entry_of_the_log_is_read_or_refused_by_name(data):
    """C17: a log that cannot be read is never taken for an empty one."""
    store = MemoryStore()
    store.write("memory://job/log/000000000000", data)

    with pytest.raises(JobRejected, match="000000000000 of the job's log cannot be read"):
        JobLog(store, "memory://job").read()


CONTENT = bytes(range(200))


@given(NOISE | spoiled(CONTENT))
@example(CONTENT + b"\0")
def test_a_state_file_that_is_not_what_was_put_there_is_refused(data):
    """C18: verified before anything is restored from it."""
    store = MemoryStore()
    file = put(store, "memory://job/chk-1/state", pa.py_buffer(CONTENT))
    store.write(file.path, data)

    if data[: len(CONTENT)] == CONTENT:  # other pieces may be behind it (spec S6)
        assert fetch(store, file).to_pybytes() == CONTENT
    else:
        with pytest.raises(DamagedState, match="memory://job/chk-1/state"):
            fetch(store, file)


@pytest.fixture(scope="module")
def api():
    with served(FakeJobView()) as server:
        yield server


PATHS = ("checkpoints", "savepoints", "stop", "cancel", "requests/x", "checkpoints/9", "nothing")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.sampled_from(PATHS), st.sampled_from(["GET", "POST", "PUT"]), NOISE)
def test_no_request_breaks_the_api(api, path, verb, body):
    """X3: the error says what is wrong."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    with closing(HTTPConnection(api.host, api.port, timeout=10)) as connection:
        connection.request(verb, f"/v1/job/{path}", body, headers)
        assert connection.getresponse().status < 500
