"""A bucket behind a wrong key, a dead server, a mute one; and races that answers get lost in."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from textwrap import dedent

import pytest

from failing_s3 import failing_s3
from weir.errors import JobRejected, Unavailable
from weir.storage import s3_store
from weir.storage.stores import NotFound, OutcomeUnknown, WriteFailed, store_for


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(s3_store, "PAUSES_S", (0.0,))


@pytest.fixture
def impatient(hasty, monkeypatch):  # noqa: ARG001  # it pauses no longer either
    monkeypatch.setattr(s3_store, "PATIENCE_S", 0.2)
    monkeypatch.setattr(s3_store, "TIMEOUTS", {"connect_timeout": 1, "read_timeout": 1})


@pytest.fixture
def bucket(monkeypatch):
    """A server with refusals, and a store that does not sleep between its tries."""
    monkeypatch.setattr(s3_store, "PAUSES_S", (0.0,) * len(s3_store.PAUSES_S))
    with failing_s3() as server:
        yield server


def store_at(server, **changes):
    return store_for("s3://", {**server.options(), **changes})


def test_a_missing_bucket_is_named_with_the_remedy(s3_store):
    """C18: the user must create it."""
    for act in (
        lambda: s3_store.write("s3://no-such-bucket/a", b"x"),
        lambda: s3_store.create_exclusive("s3://no-such-bucket/a", b"x"),
        lambda: s3_store.read("s3://no-such-bucket/a"),
        lambda: s3_store.list("s3://no-such-bucket/jobs"),
    ):
        with pytest.raises(JobRejected, match="there is no bucket 'no-such-bucket'") as caught:
            act()
        assert "AWS_ENDPOINT_URL" in str(caught.value)


@pytest.mark.parametrize("wrong", [{"key": "unknown"}, {"secret": "guessed"}])
def test_a_wrong_key_is_refused_and_no_secret_is_shown(s3_server, in_s3, wrong):
    """C18, X3: named, with the remedy, without what was sent."""
    store = store_at(s3_server, **wrong)

    with pytest.raises(JobRejected, match=r"check the keys .* bucket 'weir-test'") as caught:
        store.write(in_s3.url("a"), b"x")
    assert s3_server.admin.secret not in str(caught.value)
    assert "guessed" not in str(caught.value)


def test_a_write_by_a_user_who_may_only_read_is_rejected(s3_server, in_s3):
    """C18: permission is the user's to give."""
    guest = store_for("s3://", s3_server.options(s3_server.guest))
    in_s3.store.write(in_s3.url("a"), b"x")

    assert guest.read(in_s3.url("a")) == b"x"
    for act in (
        lambda: guest.create_exclusive(in_s3.url("log/0"), b"x"),
        lambda: guest.delete([in_s3.url("a")]),
    ):
        with pytest.raises(JobRejected, match="denies access: Access Denied"):
            act()


def test_keys_come_from_the_environment(s3_server, in_s3, monkeypatch):
    """X3: secrets come from the environment."""
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)

    store_for(in_s3.directory).write(in_s3.url("a"), b"x")

    assert in_s3.store.read(in_s3.url("a")) == b"x"


FORKING = dedent(
    """
    import os, sys
    from weir.storage.stores import store_for

    url = sys.argv[1]
    store_for(url).write(f"{url}/parent", b"parent")
    child = os.fork()
    if not child:
        store_for(url).write(f"{url}/child", store_for(url).read(f"{url}/parent"))
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
)


def test_a_forked_process_makes_a_store_of_its_own(s3_server, in_s3):
    """S7: slots are forked from a process that may have used storage already."""
    environment = {**os.environ, **s3_server.environment()}
    command = [sys.executable, "-c", FORKING, in_s3.directory]

    subprocess.run(command, env=environment, check=True, timeout=30)

    assert in_s3.store.read(in_s3.url("child")) == b"parent"


@pytest.mark.usefixtures("hasty")
def test_a_server_that_cannot_be_reached_leaves_a_doubt(s3_server, in_s3):
    """C18: it may have done the write and died before it answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    store = store_at(s3_server, endpoint_url=f"http://127.0.0.1:{port}")

    with pytest.raises(OutcomeUnknown, match="did not answer: Could not connect"):
        store.create_exclusive(in_s3.url("log/0"), b"x")
    with pytest.raises(Unavailable) as caught:
        store.read(in_s3.url("log/0"))
    assert type(caught.value) is Unavailable


def test_a_request_that_the_server_calls_wrong_stored_nothing(in_s3):
    """C18: surely not there."""
    with pytest.raises(WriteFailed, match="did not take the request"):
        in_s3.store.write(in_s3.url("a" * 1200), b"x")


@pytest.mark.usefixtures("impatient")
def test_a_server_that_does_not_answer_leaves_a_doubt(s3_server, in_s3):
    """C18: timeouts: the outcome is unknown."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        store = store_at(s3_server, endpoint_url=f"http://127.0.0.1:{port}")

        with pytest.raises(OutcomeUnknown, match="did not answer: it took too long"):
            store.write(in_s3.url("a"), b"x")
        with pytest.raises(OutcomeUnknown):
            store.create_exclusive(in_s3.url("log/0"), b"x")
        with pytest.raises(Unavailable, match="did not answer"):
            store.exists(in_s3.url("a"))


def answering(listener, answer):
    """Give every connection this answer and break it, until the listener is closed."""
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            connection.recv(1)
            connection.sendall(answer)
            connection.close()


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"])
def test_a_connection_that_breaks_leaves_a_doubt(s3_server, in_s3, answer):
    """C18: lost connections: the outcome is unknown."""
    with ThreadPoolExecutor(1) as pool, socket.create_server(("127.0.0.1", 0)) as listener:
        pool.submit(answering, listener, answer)
        port = listener.getsockname()[1]
        store = store_at(s3_server, endpoint_url=f"http://127.0.0.1:{port}")

        try:
            with pytest.raises(OutcomeUnknown, match="did not answer"):
                store.create_exclusive(in_s3.url("log/0"), b"x")
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def test_of_stores_that_race_exactly_one_creates_each_entry(s3_server, in_s3):
    """C17: each driver has connections of its own."""
    stores = [store_at(s3_server) for _ in range(8)]

    def race(n):
        mine = f"driver {n}".encode()
        return [k for k in range(10) if stores[n].create_exclusive(in_s3.url(f"log/{k}"), mine)]

    with ThreadPoolExecutor(len(stores)) as pool:
        won = list(pool.map(race, range(len(stores))))

    assert sorted(k for wins in won for k in wins) == list(range(10))


def test_a_large_object_is_written_in_parts_and_read_whole(in_s3):
    """S7: state files are large."""
    data = bytes(range(256)) * (60 << 12)

    in_s3.store.write(in_s3.url("large"), memoryview(data))
    in_s3.store.copy(in_s3.url("large"), in_s3.url("copied"))

    assert in_s3.store.size(in_s3.url("copied")) == len(data)
    assert in_s3.store.size(in_s3.url("large")) == len(data)
    assert in_s3.store.read(in_s3.url("large")) == data


def test_the_older_spelling_of_the_scheme_is_kept(in_s3):
    """S7: s3a:// is what Spark's users write."""
    directory = in_s3.directory.replace("s3://", "s3a://")
    in_s3.store.write(f"{directory}/a", b"x")

    assert in_s3.store.list(directory) == (f"{directory}/a",)


def test_a_bucket_name_that_cannot_be_is_refused(s3_store):
    """C18: a typing error is the user's to correct."""
    with pytest.raises(JobRejected, match="check the URL"):
        s3_store.write("s3://Not A Bucket/a", b"x")


def test_an_object_that_is_gone_is_not_found(in_s3):
    with pytest.raises(NotFound):
        in_s3.store.read(in_s3.url("gone"))


# Moods


EVERY_CALL = {
    "write": lambda store, url: store.write(url, b"x"),
    "create": lambda store, url: store.create_exclusive(url, b"x"),
    "read": lambda store, url: store.read(url),
    "look": lambda store, url: store.exists(url),
    "delete": lambda store, url: store.delete([url]),
}
every_call = pytest.mark.parametrize("call", EVERY_CALL.values(), ids=EVERY_CALL)


@every_call
def test_a_server_that_is_busy_is_asked_until_it_has_time(bucket, call):
    """C18, R1: a request to slow down costs no attempt."""
    bucket.objects["a"] = b"x"
    bucket.refuse(503, "SlowDown", times=len(s3_store.PAUSES_S))

    call(store_at(bucket), bucket.url("a"))

    assert not bucket.refusals


@pytest.mark.parametrize("busy", [(500, "InternalError"), (429, "TooManyRequests")])
def test_a_server_may_say_in_other_words_that_it_is_busy(bucket, busy):
    """C18: not every S3 is Amazon's."""
    bucket.refuse(*busy, times=len(s3_store.PAUSES_S))

    store_at(bucket).write(bucket.url("a"), b"x")

    assert bucket.objects == {"a": b"x"}


@every_call
def test_a_server_that_stays_busy_is_given_up_in_the_end(bucket, call):
    """C18: reported, never assumed; the caller decides what comes next."""
    bucket.refuse(503, "SlowDown", times=100)

    with pytest.raises(Unavailable, match="did not answer"):
        call(store_at(bucket), bucket.url("a"))
    assert len(bucket.asked) == len(s3_store.PAUSES_S) + 1


def test_pauses_grow_and_end_within_seconds():
    """C18, R8: throttling lasts longer than a moment, and an attempt may not hang on one call."""
    assert sorted(s3_store.PAUSES_S) == list(s3_store.PAUSES_S)
    assert 9 < sum(s3_store.PAUSES_S) < 11


def test_a_server_that_is_slow_to_fail_is_not_asked_as_often(bucket, monkeypatch):
    """C18: a request that hangs must not become minutes."""
    monkeypatch.setattr(s3_store, "LONG_S", 0.0)
    bucket.refuse(503, "SlowDown", times=100)

    with pytest.raises(OutcomeUnknown):
        store_at(bucket).write(bucket.url("a"), b"x")
    assert len(bucket.asked) == 3


def test_a_server_that_says_no_is_not_asked_as_often(bucket):
    """C18: to ask for longer would be of no use."""
    bucket.refuse(400, "InvalidRequest", times=100)

    with pytest.raises(WriteFailed, match="did not take the request"):
        store_at(bucket).write(bucket.url("a"), b"x")
    assert len(bucket.asked) == 3


@every_call
@pytest.mark.parametrize("passing", [(400, "ExpiredToken"), (403, "RequestTimeTooSkewed")])
def test_keys_that_expired_and_clocks_that_drift_are_no_end_of_the_job(bucket, call, passing):
    """C18, U3: keys are rotated and clocks are set; until then nothing is stored."""
    bucket.refuse(*passing, times=100)

    with pytest.raises(Unavailable) as caught:
        call(store_at(bucket), bucket.url("a"))
    assert not isinstance(caught.value, OutcomeUnknown)


@pytest.mark.parametrize("call", ["write", "look"])
def test_a_transient_refusal_is_reported_with_its_remedy(bucket, call):
    """U3: also where the answer to a question has no room for a reason."""
    bucket.refuse(403, "RequestTimeTooSkewed", times=100)

    with pytest.raises(Unavailable, match=r"TooSkewed, it says. Remedy: renew the keys .* clock"):
        EVERY_CALL[call](store_at(bucket), bucket.url("a"))


def test_a_refusal_that_has_passed_when_its_reason_is_asked_for_is_none(bucket):
    """C18: time healed it."""
    bucket.objects["a"] = b"x"
    bucket.refuse(403, "RequestTimeTooSkewed")

    assert store_at(bucket).exists(bucket.url("a"))


def test_a_refusal_that_does_not_pass_is_the_users(bucket):
    """C18, U3: however it was asked for."""
    bucket.refuse(403, "AccessDenied", times=2)

    with pytest.raises(JobRejected, match=r"denies access: AccessDenied, it says. Remedy: check"):
        store_at(bucket).exists(bucket.url("a"))


def test_a_place_that_is_taken_and_may_not_be_read_is_anybodys(bucket):
    """C17, C18: it may hold what an earlier try of ours put there."""
    bucket.refuse(412, "PreconditionFailed")
    bucket.refuse(403, "AccessDenied", times=2)

    with pytest.raises(OutcomeUnknown):
        store_at(bucket).create_exclusive(bucket.url("log/0"), b"x")
