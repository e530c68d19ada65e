"""An API server in memory, as far as the operator uses one.

It stores objects by path, gives each write a new version, rejects a write with an old version and a
name that exists, and keeps objects with finalizers. A test can make it fail, forbid requests, or
let another client write first. It has no schema and no watch: a test reads its list of writes.
"""

import base64
import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weir.errors import Unavailable
from weir_operator.cluster.api_requests import ApiRequest, ApiResponse

Body = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"


@dataclass
class FakeApiServer:
    """Objects by their path, and every call that was made."""

    objects: dict[str, Body] = field(default_factory=dict)
    calls: list[ApiRequest] = field(default_factory=list)
    forbidden: set[tuple[str, str]] = field(default_factory=set)
    """Verbs and kinds that the operator may not use."""
    refused: dict[tuple[str, str], ApiResponse] = field(default_factory=dict)
    """What else is answered to verbs and kinds."""
    is_away: bool = False
    before: Callable[[ApiRequest], None] = lambda _: None
    """Another client, which acts just before a request arrives."""
    _version: int = 0

    async def call(self, request: ApiRequest) -> ApiResponse:
        self.before(request)
        self.calls.append(request)
        if self.is_away:
            raise Unavailable("the API server is away", retry_after=1.0)
        if (request.verb, request.resource) in self.forbidden:
            return _refusal(403, f"may not {request.verb} {request.resource}")
        if (request.verb, request.resource) in self.refused:
            return self.refused[request.verb, request.resource]
        match request.method:
            case "GET":
                return self._get(request)
            case "POST":
                return self._post(request)
            case "PUT" | "PATCH":
                return self._write(request)
            case _:
                return self._delete(request)

    def put(self, path: str, body: Body) -> Body:
        """Store an object, as another client would."""
        self._version += 1
        kept = copy.deepcopy(body)
        metadata = kept.setdefault("metadata", {})
        metadata.setdefault("uid", f"uid-of-{metadata['name']}")
        metadata.setdefault("creationTimestamp", NOW)
        metadata["resourceVersion"] = str(self._version)
        for name, text in kept.pop("stringData", {}).items():
            kept.setdefault("data", {})[name] = base64.b64encode(text.encode()).decode()
        self.objects[path] = kept
        return copy.deepcopy(kept)

    def made(self) -> list[tuple[str, str]]:
        """All writes that were tried: what was done to which path."""
        return [(call.method, call.path) for call in self.calls if call.method != "GET"]

    def names(self, plural: str) -> list[str]:
        return sorted(path.rpartition("/")[2] for path in self.objects if f"/{plural}/" in path)

    def _get(self, request: ApiRequest) -> ApiResponse:
        if request.path in self.objects:
            return ApiResponse(200, copy.deepcopy(self.objects[request.path]))
        if not request.path.endswith(f"/{request.api_resource.plural}"):
            return _refusal(404, f"{request.path} is not there")
        found = [copy.deepcopy(body) for path, body in self._listed(request)]
        return ApiResponse(200, {"items": found, "metadata": {}})

    def _listed(self, request: ApiRequest) -> list[tuple[str, Body]]:
        name, _, value = request.query.get("labelSelector", "").partition("=")
        root, _, plural = request.path.rpartition("/")
        return [
            (path, body)
            for path, body in sorted(self.objects.items())
            if path.startswith(root)
            and f"/{plural}/" in path
            and (not name or _has(body, name, value))
        ]

    def _post(self, request: ApiRequest) -> ApiResponse:
        assert isinstance(request.body, dict), "what is made has a body"
        path = f"{request.path}/{request.body['metadata']['name']}"
        if path in self.objects:
            return _refusal(409, f"{path} exists already")
        return ApiResponse(201, self.put(path, request.body))

    def _write(self, request: ApiRequest) -> ApiResponse:
        assert isinstance(request.body, dict), "what is written has a body"
        path = request.path.removesuffix("/status")
        if path not in self.objects:
            return _refusal(404, f"{path} is not there")
        kept = self.objects[path]
        lock = request.body.get("metadata", {}).get("resourceVersion")
        if lock not in (None, kept["metadata"]["resourceVersion"]):
            return _refusal(409, f"{path} is newer than {lock}")
        if request.path.endswith("/status"):
            written = {**kept, "status": request.body["status"]}
        elif request.method == "PATCH":
            written = _merged(kept, request.body)
        else:
            written = {**request.body, "metadata": {**kept["metadata"]}}
        answer = ApiResponse(200, self.put(path, written))
        self._let_go(path)
        return answer

    def _delete(self, request: ApiRequest) -> ApiResponse:
        kept = self.objects.get(request.path)
        if kept is None:
            return _refusal(404, f"{request.path} is not there")
        options = request.body if isinstance(request.body, dict) else {}
        wanted = options.get("preconditions", {}).get("uid")
        if wanted not in (None, kept["metadata"]["uid"]):
            return _refusal(409, "the uid is another")
        kept["metadata"]["deletionTimestamp"] = NOW
        self._let_go(request.path)
        return ApiResponse(200, copy.deepcopy(kept))

    def _let_go(self, path: str) -> None:
        metadata = self.objects[path]["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            del self.objects[path]


def _has(body: Body, label: str, value: str) -> bool:
    labels = body["metadata"].get("labels") or {}
    return label in labels and value in ("", labels[label])


def _refusal(code: int, message: str) -> ApiResponse:
    return ApiResponse(code, {"kind": "Status", "message": message})


def _merged(below: Body, above: Body) -> Body:
    merged = dict(below)
    for name, value in above.items():
        if isinstance(value, dict):
            merged[name] = _merged(merged.get(name) or {}, value)
        else:
            merged[name] = value
    return merged
