"""Checks that the watches still deliver events: it writes a ConfigMap and waits for the event.

A watch can stall without an error; then the operator looks healthy and observes nothing. So the
probe updates a small ConfigMap periodically. If the watch event does not arrive in time, the
operator reports itself as unhealthy, and Kubernetes restarts it (spec K9).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from weir.errors import Unavailable
from weir_operator.cluster.api_paths import CONFIG_MAPS, NamespacedName
from weir_operator.cluster.api_requests import (
    ApiRejected,
    ApiRequest,
    ApiServer,
    create_request,
    successful_body,
)
from weir_operator.cluster.status_writer import MERGE

log = logging.getLogger("weir_operator.watch_probe")

PROBE_CONFIG_MAP = "weir-operator-canary"
PERIOD_S = 30.0
TIMEOUT_S = 90.0


@dataclass(slots=True)
class WatchProbe:
    """The probes that were written, and whether the last one came back."""

    api: ApiServer
    namespace: str
    is_watched: bool = True
    """Whether the watches cover the operator's namespace at all."""
    clock: Callable[[], float] = monotonic
    _sent: int = 0
    _overdue_since: float | None = None

    async def write_forever(self) -> None:
        while self.is_watched:
            await self.beat()
            await asyncio.sleep(PERIOD_S)

    async def beat(self) -> None:
        """Write a probe; a failed write says nothing about the watches."""
        self._sent += 1
        body = {"data": {"beat": str(self._sent)}}
        key = NamespacedName(self.namespace, PROBE_CONFIG_MAP)
        request = ApiRequest("PATCH", CONFIG_MAPS, CONFIG_MAPS.object_path(key), {}, body, MERGE)
        try:
            answer = await self.api.call(request)
            if answer.is_not_found:
                metadata = {"name": PROBE_CONFIG_MAP, "namespace": self.namespace}
                manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **body}
                request = create_request(CONFIG_MAPS, self.namespace, manifest)
                answer = await self.api.call(request)
            successful_body(request, answer)
        except (ApiRejected, Unavailable) as problem:
            log.warning("The watch probe could not be written.", extra={"why": str(problem)})
            return
        if self._overdue_since is None:
            self._overdue_since = self.clock()

    def observed_in_watch(self, event: Mapping[str, Any]) -> None:
        """Handle an event of the ConfigMap; the last probe shows that the watch is up to date."""
        body = event["object"]
        is_ours = body["metadata"].get("namespace") == self.namespace
        if is_ours and (body.get("data") or {}).get("beat") == str(self._sent):
            self._overdue_since = None

    @property
    def is_healthy(self) -> bool:
        since = self._overdue_since
        return since is None or self.clock() - since < TIMEOUT_S
