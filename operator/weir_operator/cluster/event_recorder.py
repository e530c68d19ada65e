"""Tells whoever watches a resource, by Events of Kubernetes that do not pile up.

An Event's name is made of what it says and about whom. Saying it again counts the same object up,
until Kubernetes forgets it after about an hour. An Event is a word and no effect: one that cannot
be written is logged and holds nothing up.
"""

import hashlib
import logging
from datetime import datetime

from weir.errors import Unavailable
from weir_operator.cluster.api_paths import EVENTS, Key, Place
from weir_operator.cluster.api_requests import Api, ApiRefused, Json, Request, create, good, read
from weir_operator.cluster.resource_object import Opened
from weir_operator.cluster.status_writer import KINDS, MERGE
from weir_operator.plan.cluster_actions import EmitEvent
from weir_operator.resource.api_group import GROUP, VERSION

log = logging.getLogger("weir_operator.cluster.event_recorder")

COMPONENT = "weir-operator"
_LONGEST_MESSAGE = 1_024
_LONGEST_NAME = 200


async def tell(api: Api, place: Place, about: Opened, event: EmitEvent, now: datetime) -> None:
    """Write an Event, or count it up if it was written before."""
    manifest = _manifest(place, about, event, now)
    try:
        request = create(EVENTS, about.key.namespace, manifest)
        answer = await api.call(request)
        if answer.is_conflict:
            await _count_up(api, Key(about.key.namespace, manifest["metadata"]["name"]), now)
        else:
            good(request, answer)
    except (ApiRefused, Unavailable) as problem:
        log.warning("An Event was not written.", extra={"event": event.reason, "why": str(problem)})


async def _count_up(api: Api, key: Key, now: datetime) -> None:
    found = await api.call(read(EVENTS, key))
    if not found.is_good:
        return
    more = {"count": int(found.body.get("count") or 1) + 1, "lastTimestamp": _time(now)}
    request = Request("PATCH", EVENTS, EVENTS.of(key), {}, more, MERGE)
    answer = await api.call(request)
    if not answer.is_missing:
        good(request, answer)


def _manifest(place: Place, about: Opened, event: EmitEvent, now: datetime) -> Json:
    said = f"{about.uid}\n{event.reason}\n{event.message}"
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{about.key.name[:_LONGEST_NAME]}.{digest}",
            "namespace": about.key.namespace,
        },
        "involvedObject": {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KINDS[place].kind,
            "name": about.key.name,
            "namespace": about.key.namespace,
            "uid": about.uid,
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
