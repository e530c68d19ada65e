"""An API server in memory, as far as the operator's shell speaks to one.

It keeps objects under their paths, gives each write a new version, refuses a write under an old one
and a name that is taken, and holds what has a finalizer. It can be told to fail, to forbid, and to
let somebody else write first. It has no schema and no watch: whoever wants events reads its list of
writes.
"""

import base64
import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from weir.errors import Unavailable
from weir_operator.cluster.api_requests import Answer, Request

Body = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"


@dataclass
class LittleApi:
    """Objects by their path, and every call that was made."""

    objects: dict[str, Body] = field(default_factory=dict)
    calls: list[Request] = field(default_factory=list)
    forbidden: set[tuple[str, str]] = field(default_factory=set)
    """Verbs and kinds that the operator may not use."""
    refused: dict[tuple[str, str], Answer] = field(default_factory=dict)
    """What else is answered to verbs and kinds."""
    is_away: bool = False
    before: Callable[[Request], None] = lambda _: None
    """Somebody else, who acts just before a call arrives."""
    _version: int = 0

    async def call(self, request: Request) -> Answer:
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
        """Place an object there, as somebody else would."""
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

    def _get(self, request: Request) -> Answer:
        if request.path in self.objects:
            return Answer(200, copy.deepcopy(self.objects[request.path]))
        if not request.path.endswith(f"/{request.place.plural}"):
            return _refusal(404, f"{request.path} is not there")
        found = [copy.deepcopy(body) for path, body in self._listed(request)]
        return Answer(200, {"items": found, "metadata": {}})

    def _listed(self, request: Request) -> list[tuple[str, Body]]:
        name, _, value = request.query.get("labelSelector", "").partition("=")
        root, _, plural = request.path.rpartition("/")
        return [
            (path, body)
            for path, body in sorted(self.objects.items())
            if path.startswith(root)
            and f"/{plural}/" in path
            and (not name or _has(body, name, value))
        ]

    def _post(self, request: Request) -> Answer:
        assert isinstance(request.body, dict), "what is made has a body"
        path = f"{request.path}/{request.body['metadata']['name']}"
        if path in self.objects:
            return _refusal(409, f"{path} exists already")
        return Answer(201, self.put(path, request.body))

    def _write(self, request: Request) -> Answer:
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
        answer = Answer(200, self.put(path, written))
        self._let_go(path)
        return answer

    def _delete(self, request: Request) -> Answer:
        kept = self.objects.get(request.path)
        if kept is None:
            return _refusal(404, f"{request.path} is not there")
        options = request.body if isinstance(request.body, dict) else {}
        wanted = options.get("preconditions", {}).get("uid")
        if wanted not in (None, kept["metadata"]["uid"]):
            return _refusal(409, "the uid is another")
        kept["metadata"]["deletionTimestamp"] = NOW
        self._let_go(request.path)
        return Answer(200, copy.deepcopy(kept))

    def _let_go(self, path: str) -> None:
        metadata = self.objects[path]["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            del self.objects[path]


def _has(body: Body, label: str, value: str) -> bool:
    labels = body["metadata"].get("labels") or {}
    return label in labels and value in ("", labels[label])


def _refusal(code: int, message: str) -> Answer:
    return Answer(code, {"kind": "Status", "message": message})


def _merged(below: Body, above: Body) -> Body:
    merged = dict(below)
    for name, value in above.items():
        if isinstance(value, dict):
            merged[name] = _merged(merged.get(name) or {}, value)
        else:
            merged[name] = value
    return merged
