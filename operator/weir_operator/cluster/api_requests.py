"""Requests to the API server and its responses, with all errors classified in one place.

Responses that a caller expects (not found, conflict) are values. Temporary errors are
``Unavailable``. Errors that need a person are ``ApiRejected``, which names the object, the cause
and the missing permission. Nothing here depends on the transport.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

from weir.errors import JobRejected, Unavailable
from weir_operator.cluster.api_paths import ApiResource, NamespacedName

Json = Mapping[str, Any]
"""A JSON object."""

METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""Requests the metadata of an object without its contents."""

RETRY_AFTER_S = 1.0
_LONGEST_CAUSE = 640
"""So that the remedy after it is never truncated."""

_TOO_LARGE = ("etcdserver: request is too large", "trying to send message larger than max")
"""Messages of etcd, and of the API server's etcd client, under codes that otherwise mean a server
error."""

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class ApiRejected(JobRejected):
    """The API server rejects the request until a person changes something."""

    def __init__(self, reason: str, problem: str, cause: str, remedy: str) -> None:
        """Give a reason for programs and the three parts of the message."""
        super().__init__(problem, cause, remedy)
        self.reason = reason


class ObjectTooLarge(ApiRejected):
    """The API server does not store an object of this size, so a retry is useless."""

    def __init__(self, problem: str, cause: str, remedy: str) -> None:
        super().__init__("ObjectTooLarge", problem, cause, remedy)


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request: method, resource and path."""

    method: str
    api_resource: ApiResource
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def verb(self) -> str:
        """The verb as in an RBAC rule."""
        is_list = self.method == "GET" and self.path.endswith(f"/{self.api_resource.plural}")
        return "list" if is_list else _VERBS[self.method]

    @property
    def resource(self) -> str:
        """The resource as in an RBAC rule; a subresource needs a separate rule."""
        return (
            f"{self.api_resource.plural}/status"
            if self.path.endswith("/status")
            else self.api_resource.plural
        )


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """The response of the API server."""

    code: int
    body: Json

    @property
    def is_success(self) -> bool:
        return self.code < HTTPStatus.BAD_REQUEST

    @property
    def is_not_found(self) -> bool:
        return self.code == HTTPStatus.NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        return self.code == HTTPStatus.CONFLICT

    @property
    def is_forbidden(self) -> bool:
        return self.code == HTTPStatus.FORBIDDEN

    @property
    def is_too_large(self) -> bool:
        """Whether the API server or its etcd does not store an object of this size."""
        if self.code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return True
        message = str(self.body.get("message", ""))
        return not self.is_success and any(words in message for words in _TOO_LARGE)


class ApiServer(Protocol):
    """The API server. ``call`` raises ``Unavailable`` when no response arrives in time."""

    async def call(self, request: ApiRequest) -> ApiResponse: ...


def get_request(api_resource: ApiResource, key: NamespacedName) -> ApiRequest:
    return ApiRequest("GET", api_resource, api_resource.object_path(key))


def create_request(api_resource: ApiResource, namespace: str, manifest: Json) -> ApiRequest:
    return ApiRequest("POST", api_resource, api_resource.collection_path(namespace), body=manifest)


def successful_body(request: ApiRequest, answer: ApiResponse) -> Json:
    """The body of a successful response; raises for any other."""
    if answer.is_success:
        return answer.body
    message = str(answer.body.get("message", ""))[:_LONGEST_CAUSE]
    if answer.is_too_large:
        raise ObjectTooLarge(
            f"the API server does not {request.verb} {request.resource}",
            f"the object is too large to be stored ({message})",
            "shorten its specification, annotations, labels and finalizers",
        )
    if answer.is_conflict:
        raise Unavailable(
            f"{request.path} was changed by another client",
            message,
            "none; the operator reads the object again",
            retry_after=RETRY_AFTER_S,
        )
    if answer.is_forbidden:
        raise ApiRejected(
            "Forbidden",
            f"the API server forbids to {request.verb} {request.resource}",
            message,
            f"allow the operator to {request.verb} {request.resource}, or change the quota or "
            "policy that the message names",
        )
    raise ApiRejected(
        "ApiServerRefused",
        f"the API server does not {request.verb} {request.resource} (code {answer.code})",
        message,
        "change the fields of the specification that the message names",
    )
