"""What the API server is asked and what it answers, with its refusals sorted once by who must act.

An answer that a caller can expect (not found, conflict) is a value. One that time may heal is
``Unavailable``. One that a person must heal is ``ApiRefused``, which names the thing, the cause and
the permission that is missing. Nothing here knows how the words travel.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

from weir.errors import JobRejected, Unavailable
from weir_operator.cluster.api_paths import Key, Place

Json = Mapping[str, Any]
"""An object as it travels."""

METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""An answer without what is in the object."""

RETRY_AFTER_S = 1.0
_LONGEST_SAID = 640
"""So that the remedy after it is never cut off."""

_TOO_LARGE = ("etcdserver: request is too large", "trying to send message larger than max")
"""What etcd, and the API server's client of it, say under codes that otherwise mean a failure."""

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class ApiRefused(JobRejected):
    """The API server will not do it until a person changes something."""

    def __init__(self, reason: str, problem: str, cause: str, remedy: str) -> None:
        """Give one word for programs and the three parts for people."""
        super().__init__(problem, cause, remedy)
        self.reason = reason


class TooLarge(ApiRefused):
    """The API server stores no object of this size, so trying again is of no use."""

    def __init__(self, problem: str, cause: str, remedy: str) -> None:
        super().__init__("ObjectTooLarge", problem, cause, remedy)


@dataclass(frozen=True, slots=True)
class Request:
    """One call: what is done to which kind of object, and where."""

    method: str
    place: Place
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def verb(self) -> str:
        """In the words of a role."""
        is_list = self.method == "GET" and self.path.endswith(f"/{self.place.plural}")
        return "list" if is_list else _VERBS[self.method]

    @property
    def resource(self) -> str:
        """In the words of a role; a subresource has a rule of its own."""
        return f"{self.place.plural}/status" if self.path.endswith("/status") else self.place.plural


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, if anything did."""

    code: int
    body: Json

    @property
    def is_good(self) -> bool:
        return self.code < HTTPStatus.BAD_REQUEST

    @property
    def is_missing(self) -> bool:
        return self.code == HTTPStatus.NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        return self.code == HTTPStatus.CONFLICT

    @property
    def is_forbidden(self) -> bool:
        return self.code == HTTPStatus.FORBIDDEN

    @property
    def is_too_large(self) -> bool:
        """The API server or its etcd stores no object of this size, however often it is asked."""
        if self.code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return True
        said = str(self.body.get("message", ""))
        return not self.is_good and any(words in said for words in _TOO_LARGE)


class Api(Protocol):
    """The API server. ``call`` raises ``Unavailable`` when no verdict came within its time."""

    async def call(self, request: Request) -> Answer: ...


def read(place: Place, key: Key) -> Request:
    return Request("GET", place, place.of(key))


def create(place: Place, namespace: str, manifest: Json) -> Request:
    return Request("POST", place, place.within(namespace), body=manifest)


def good(request: Request, answer: Answer) -> Json:
    """The body of a good answer; anything else becomes the error of whoever must act."""
    if answer.is_good:
        return answer.body
    said = str(answer.body.get("message", ""))[:_LONGEST_SAID]
    if answer.is_too_large:
        raise TooLarge(
            f"the API server does not {request.verb} {request.resource}",
            f"the object is too large to be stored ({said})",
            "shorten what people wrote of it: its specification, annotations, labels and "
            "finalizers",
        )
    if answer.is_conflict:
        raise Unavailable(
            f"{request.path} was changed by another client",
            said,
            "none is needed; the object is read again",
            retry_after=RETRY_AFTER_S,
        )
    if answer.is_forbidden:
        raise ApiRefused(
            "Forbidden",
            f"the API server forbids to {request.verb} {request.resource}",
            said,
            f"allow the operator to {request.verb} {request.resource}, or change the quota or "
            "policy that it names",
        )
    raise ApiRefused(
        "ApiServerRefused",
        f"the API server does not {request.verb} {request.resource} (code {answer.code})",
        said,
        "change what it names in the specification",
    )
