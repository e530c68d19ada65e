"""Records Kubernetes Events for a resource without flooding it.

The name of an Event is a hash of its subject and text. Recording it again increments its count,
until Kubernetes deletes it after about an hour. An Event is informational: if it cannot be written,
the error is logged and nothing else changes.
"""

import hashlib
import logging
from datetime import datetime

from weir.errors import Unavailable
from weir_operator.cluster.api_paths import EVENTS, ApiResource, NamespacedName
from weir_operator.cluster.api_requests import (
    ApiRejected,
    ApiRequest,
    ApiServer,
    Json,
    create_request,
    get_request,
    successful_body,
)
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.cluster.status_writer import KINDS, MERGE
from weir_operator.plan.cluster_actions import EmitEvent
from weir_operator.resource.api_group import GROUP, VERSION

log = logging.getLogger("weir_operator.cluster.event_recorder")

COMPONENT = "weir-operator"
_LONGEST_MESSAGE = 1_024
_LONGEST_NAME = 200


async def record_event(
    api: ApiServer,
    api_resource: ApiResource,
    subject: ResourceObject,
    event: EmitEvent,
    now: datetime,
) -> None:
    """Create an Event, or increment its count if it exists."""
    manifest = _manifest(api_resource, subject, event, now)
    try:
        request = create_request(EVENTS, subject.key.namespace, manifest)
        answer = await api.call(request)
        if answer.is_conflict:
            await _increment_count(
                api, NamespacedName(subject.key.namespace, manifest["metadata"]["name"]), now
            )
        else:
            successful_body(request, answer)
    except (ApiRejected, Unavailable) as problem:
        log.warning(
            "An Event could not be recorded.", extra={"event": event.reason, "why": str(problem)}
        )


async def _increment_count(api: ApiServer, key: NamespacedName, now: datetime) -> None:
    found = await api.call(get_request(EVENTS, key))
    if not found.is_success:
        return
    more = {"count": int(found.body.get("count") or 1) + 1, "lastTimestamp": _time(now)}
    request = ApiRequest("PATCH", EVENTS, EVENTS.object_path(key), {}, more, MERGE)
    answer = await api.call(request)
    if not answer.is_not_found:
        successful_body(request, answer)


def _manifest(
    api_resource: ApiResource, subject: ResourceObject, event: EmitEvent, now: datetime
) -> Json:
    text = f"{subject.uid}\n{event.reason}\n{event.message}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{subject.key.name[:_LONGEST_NAME]}.{digest}",
            "namespace": subject.key.namespace,
        },
        "involvedObject": {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KINDS[api_resource].kind,
            "name": subject.key.name,
            "namespace": subject.key.namespace,
            "uid": subject.uid,
        },
        "type": "Warning" if event.is_warning else "Normal",
        "reason": event.reason,
        "message": event.message[:_LONGEST_MESSAGE],
        "count": 1,
        "firstTimestamp": _time(now),
        "lastTimestamp": _time(now),
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    }


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
