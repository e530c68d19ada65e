"""Keeps objects in a bucket of S3, or of a compatible store.

Exclusive creation is S3's conditional put (``If-None-Match: *``): of any number of racing writers
the server lets one through. A try whose answer was lost may have been that one, so a writer that
finds an existing object reads it before it reports a conflict.

Retries are made here and not in s3fs, because only here it is remembered whether one of the tries
may have succeeded. One retry cannot be turned off: when a connection breaks, the HTTP client below
sends a put once more by itself. So a server that refuses our connection proves nothing, and only
its own word that the request was wrong makes a failed write a certain one.

A server that is busy is asked for some ten seconds, for what it keeps from doing may cost a job its
attempt. A server that refuses, or does not answer for long, is asked only a few times.

Every write has a deadline. None asks the server's leave to send its body (``Expect:
100-continue``): a client that waits for that does not notice that the answer is overdue.

A store opens its connections when it is first used. It must be made after a fork, never before.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import s3fs
from botocore import exceptions as boto  # type: ignore[import-untyped]
from botocore.handlers import add_expect_header  # type: ignore[import-untyped]
from fsspec.asyn import sync

from weir.errors import JobRejected, Unavailable, WeirError
from weir.storage.object_store import (
    RETRY_AFTER_S,
    Data,
    NotFound,
    OutcomeUnknown,
    WriteFailed,
    refuse_used,
)

SCHEMES = ("s3://", "s3a://")

PAUSES_S = (0.1, 0.4, 0.8, 1.6, 3.0, 4.0)
"""Between the tries of one call, give or take a half, lest those who were refused come together."""

FEW = 2
LONG_S = 10.0
"""A refusal is followed by a few of them only, and so are tries that took long."""

PATIENCE_S = 30.0
SLOWEST_BYTES_S = 1 << 20
"""A write may take as long as PATIENCE_S, and longer at this rate."""

PART_BYTES = 8 << 20
PARTS_AT_ONCE = 2
"""An object of two parts or more is sent in parts, so many of them at the same time."""

TIMEOUTS = {"connect_timeout": 5, "read_timeout": 20}

T = TypeVar("T")

_NO_KEYS = (boto.NoCredentialsError, boto.PartialCredentialsError)
_PASSING = ("ExpiredToken", "RequestTimeTooSkewed")
"""Refusals that end when keys are renewed or a clock is set."""
_WITHOUT_A_WORD = "403"
"""What a refusal is called that has no body, as the answer to a HEAD."""
_BEYOND_THE_END = 416
_PRECONDITION_FAILED = 412
_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500


class _Parts:
    """A large object of which only the parts that are being sent are copied into memory."""

    def __init__(self, content: memoryview) -> None:
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def __getitem__(self, part: slice) -> bytes:
        return bytes(self._content[part])


class _Exists(WeirError):
    """A conditional put found the place taken."""


class S3Store:
    """Objects of ``s3://bucket/key`` URLs.

    Keys and the endpoint come from AWS's standard environment variables and fsspec's configuration;
    ``options`` are s3fs's own (``key``, ``secret``, ``token``, ``endpoint_url`` and so on).
    """

    def __init__(self, options: Mapping[str, object]) -> None:
        given = cast("Mapping[str, object]", options.get("config_kwargs", {}))
        config = {**TIMEOUTS, **given, "retries": {"total_max_attempts": 1}}
        self._files = s3fs.S3FileSystem(
            **{**options, "config_kwargs": config},
            skip_instance_cache=True,
            use_listings_cache=False,
        )
        self._files.retries = 1

    def read(self, url: str) -> bytes:
        content = self._look(url, lambda: self._files._cat_file(_name(url)))  # noqa: SLF001
        return cast("bytes", content)

    def read_range(self, url: str, start: int, stop: int) -> bytes:
        async def between() -> bytes:
            try:
                content = await self._files._cat_file(_name(url), start=start, end=stop)  # noqa: SLF001
            except OSError as problem:
                if _status(problem) != _BEYOND_THE_END:
                    raise
                return b""
            return cast("bytes", content)

        return self._look(url, between)

    def size(self, url: str) -> int:
        head = self._look(url, lambda: self._call("head_object", url))
        return int(cast("int", head["ContentLength"]))

    def exists(self, url: str) -> bool:
        try:
            self.size(url)
        except NotFound:
            return False
        return True

    def list(self, directory: str) -> tuple[str, ...]:
        scheme = directory.partition("://")[0]
        names = self._look(directory, lambda: self._files._find(f"{_name(directory)}/"))  # noqa: SLF001
        return tuple(sorted(f"{scheme}://{name}" for name in cast("Iterable[str]", names)))

    def list_unfinished(self, directory: str) -> tuple[str, ...]:
        """None: an upload that broke off is no object, and a rule of the bucket ends it."""
        del directory
        return ()

    def write(self, url: str, data: Data) -> None:
        content = memoryview(data).cast("B")
        body = bytes(content) if len(content) < 2 * PART_BYTES else _Parts(content)
        self._change(
            url,
            len(content),
            lambda: self._files._pipe_file(  # noqa: SLF001
                _name(url), body, chunksize=PART_BYTES, max_concurrency=PARTS_AT_ONCE
            ),
        )

    def copy(self, source: str, target: str) -> None:
        size = self.size(source)
        self._change(
            target,
            size,
            lambda: self._files._cp_file(_name(source), _name(target)),  # noqa: SLF001
        )

    def create_exclusive(self, url: str, data: bytes) -> bool:
        try:
            self._change(
                url, len(data), lambda: self._call("put_object", url, Body=data, IfNoneMatch="*")
            )
        except _Exists:
            return self._holds(url, data)
        return True

    def delete(self, urls: Iterable[str]) -> None:
        for url in urls:
            self._delete(url)

    def make_new(self, directory: str) -> None:
        if self.list(directory):
            raise refuse_used(directory)

    def _holds(self, url: str, data: bytes) -> bool:
        try:
            return self.read(url) == data
        except NotFound:
            return False  # it was another's, and is gone again
        except (Unavailable, JobRejected) as problem:  # the owner of the object is unknown
            raise OutcomeUnknown(*problem.parts) from problem

    def _delete(self, url: str) -> None:
        try:
            self._change(url, 0, lambda: self._call("delete_object", url))
        except NotFound:
            return

    def _call(self, method: str, url: str, **arguments: object) -> Awaitable[dict[str, object]]:
        bucket, _, key = _name(url).partition("/")
        call = self._files._call_s3(method, Bucket=bucket, Key=key, **arguments)  # noqa: SLF001
        return cast("Awaitable[dict[str, object]]", call)

    def _look(self, url: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until it is answered. The libraries below give up a read that makes no progress."""
        failed: list[Unavailable] = []
        for _ in _tries(failed):
            try:
                return self._try(url, ask, None)
            except Unavailable as problem:
                failed.append(problem)
        raise Unavailable(*failed[-1].parts, retry_after=RETRY_AFTER_S) from failed[-1]

    def _change(self, url: str, size: int, act: Callable[[], Awaitable[object]]) -> None:
        """Act until it is answered. Once a try is in doubt, no later refusal settles it."""
        failed: list[Unavailable] = []
        for _ in _tries(failed):
            try:
                self._try(url, act, PATIENCE_S + size / SLOWEST_BYTES_S)
            except Unavailable as problem:
                failed.append(problem)
            except JobRejected:
                if any(isinstance(problem, OutcomeUnknown) for problem in failed):
                    break
                raise
            else:
                return
        raise next(
            (problem for problem in failed if isinstance(problem, OutcomeUnknown)), failed[-1]
        )

    def _try(self, url: str, act: Callable[[], Awaitable[T]], patience: float | None) -> T:
        async def bounded() -> T:
            client = await self._files.set_session()
            client.meta.events.unregister("before-call.s3", add_expect_header)
            try:
                return await asyncio.wait_for(act(), patience)
            except PermissionError as refusal:
                if _code(refusal) != _WITHOUT_A_WORD:
                    raise
                await self._raise_reason(url)
                return await asyncio.wait_for(act(), patience)

        try:
            return cast("T", sync(self._files.loop, bounded))
        except Exception as problem:  # s3fs lets through whatever went wrong below it
            raise _explained(url, problem) from problem

    async def _raise_reason(self, url: str) -> None:
        """Ask for something whose refusal gives a reason, and fail with it if there is one."""
        reply = await self._call("get_object", url, Range="bytes=0-0")
        cast("Any", reply["Body"]).close()


def _tries(failed: Sequence[Unavailable]) -> Iterator[None]:
    """The first try, and one after each pause, as long as the failures are worth another."""
    began = time.monotonic()
    yield
    for number, pause in enumerate(PAUSES_S):
        took_long = time.monotonic() - began >= LONG_S
        if number >= FEW and (took_long or isinstance(failed[-1], WriteFailed)):
            return
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311  # no secret
        yield


def _name(url: str) -> str:
    """Bucket and key."""
    assert url.startswith(SCHEMES), f"{url} is not the URL of an object in S3"
    return url.partition("://")[2]


def _explained(url: str, problem: Exception) -> WeirError:
    """The error for the caller; it quotes the server's answer and never the request."""
    bucket = _name(url).partition("/")[0]
    answer = " ".join(str(problem).split())
    if _code(problem) in _PASSING:
        return WriteFailed(
            f"{url}: the storage denies access for now",
            answer,
            "renew the keys if they have expired, or set this machine's clock",
        )
    if isinstance(problem, (PermissionError, *_NO_KEYS)):
        return JobRejected(
            f"{url}: the storage denies access",
            answer,
            "check the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what they may "
            f"do in bucket {bucket!r}",
        )
    if _code(problem) == "NoSuchBucket":
        return JobRejected(
            f"{url} cannot be reached",
            f"there is no bucket {bucket!r} at this endpoint",
            "create it, or check the bucket's name and AWS_ENDPOINT_URL",
        )
    if isinstance(problem, FileNotFoundError):
        return NotFound(url)
    if isinstance(problem, (boto.ParamValidationError, ValueError)):
        return JobRejected(
            f"{url}: this cannot be asked of S3",
            answer,
            "check the URL",
        )
    return _undone(url, problem, answer)


def _undone(url: str, problem: Exception, answer: str) -> WeirError:
    """Whether a try that failed is sure to have left nothing."""
    status = _status(problem)
    if status == _PRECONDITION_FAILED:
        return _Exists(
            f"{url} exists",
            "a conditional put found it",
        )
    if 0 < status < _SERVER_ERRORS and status != _TOO_MANY_REQUESTS:
        return WriteFailed(
            f"{url}: the storage did not take the request",
            answer,
            "check the storage; it is tried again",
        )
    return OutcomeUnknown(
        f"{url}: the storage did not answer",
        answer or "it took too long",
        "check that this machine reaches the storage; it is tried again",
    )


def _response(problem: Exception) -> Mapping[str, Mapping[str, object]]:
    """What the server answered; s3fs keeps it as the cause of its own error."""
    response = getattr(problem.__cause__ or problem, "response", None)
    return response if isinstance(response, dict) else {}


def _code(problem: Exception) -> object:
    return _response(problem).get("Error", {}).get("Code", "")


def _status(problem: Exception) -> int:
    """Zero when there was no answer."""
    status = _response(problem).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status if isinstance(status, int) else 0
