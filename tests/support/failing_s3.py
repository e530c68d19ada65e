"""A small S3 in this process that refuses requests on demand and records all of them.

It knows one bucket and the few requests that a store makes. Real behaviour is tested on a real S3;
this one is for the answers that a healthy server does not give on request.
"""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import urlsplit

BUCKET = "failing"
NOT_FOUND, PRECONDITION_FAILED = (404, "NoSuchKey"), (412, "PreconditionFailed")
NOTHING_LISTED = b"<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>"


@dataclass
class FailingS3:
    """A bucket, its refusals, and its memory of what was asked."""

    endpoint: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    refusals: deque[tuple[int, str]] = field(default_factory=deque)
    """Status and code of the answers to the next requests."""
    asked: list[str] = field(default_factory=list)
    """The method of each request, in their order."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def refuse(self, status: int, code: str, times: int = 1) -> None:
        self.refusals.extend([(status, code)] * times)

    def options(self) -> dict[str, str]:
        return {"endpoint_url": self.endpoint, "key": "k", "secret": "s"}

    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def url(self, name: str) -> str:
        return f"s3://{BUCKET}/{name}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, bucket: FailingS3) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bucket = bucket


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing: the test says what went wrong."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        bucket = cast("_Server", self.server).bucket
        address = urlsplit(self.path)
        name = address.path.removeprefix(f"/{BUCKET}").removeprefix("/")
        with bucket.lock:
            bucket.asked.append(self.command)
            if bucket.refusals:
                self._refuse(*bucket.refusals.popleft())
            elif self.command in ("PUT", "DELETE"):
                self._change(bucket.objects, name, body)
            elif "list-type" in address.query:
                self._answer(200, NOTHING_LISTED)
            elif name in bucket.objects:
                self._give(bucket.objects[name])
            else:
                self._refuse(*NOT_FOUND)

    do_GET = do_HEAD = do_PUT = do_DELETE = _serve  # noqa: N815

    def _change(self, objects: dict[str, bytes], name: str, body: bytes) -> None:
        if self.command == "DELETE":
            objects.pop(name, None)
            self._answer(204)
        elif self.headers.get("If-None-Match") and name in objects:
            self._refuse(*PRECONDITION_FAILED)
        else:
            objects[name] = body
            self._answer(200)

    def _give(self, content: bytes) -> None:
        wanted = self.headers.get("Range", "").removeprefix("bytes=0-")
        self._answer(206 if wanted else 200, content[: int(wanted) + 1] if wanted else content)

    def _refuse(self, status: int, code: str) -> None:
        words = f"<Error><Code>{code}</Code><Message>{code}, it says</Message></Error>"
        self._answer(status, words.encode())

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def failing_s3() -> Iterator[FailingS3]:
    bucket = FailingS3()
    with _Server(bucket) as server:
        bucket.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield bucket
        finally:
            server.shutdown()
            thread.join()
