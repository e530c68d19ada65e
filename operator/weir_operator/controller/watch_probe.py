"""Proves that the watches still bring news: a beat goes to the API server and must come back.

A watch can die without anybody noticing; then the operator looks well and sees nothing. So a small
ConfigMap of our own is changed now and then, and when a change does not come back in time, the
operator says that it is unwell, and Kubernetes starts it anew (spec K9).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from weir.errors import Unavailable
from weir_operator.cluster.api_paths import CONFIG_MAPS, Key
from weir_operator.cluster.api_requests import Api, ApiRefused, Request, create, good
from weir_operator.cluster.status_writer import MERGE

log = logging.getLogger("weir_operator.canary")

CANARY = "weir-operator-canary"
EVERY_S = 30.0
PATIENCE_S = 90.0


@dataclass(slots=True)
class Canary:
    """The beats that went out, and the last that came back."""

    api: Api
    namespace: str
    is_watched: bool = True
    """Whether the watches cover our own namespace at all."""
    clock: Callable[[], float] = monotonic
    _sent: int = 0
    _overdue_since: float | None = None

    async def beat_forever(self) -> None:
        while self.is_watched:
            await self.beat()
            await asyncio.sleep(EVERY_S)

    async def beat(self) -> None:
        """Send a beat; one that could not be sent proves nothing against the watches."""
        self._sent += 1
        body = {"data": {"beat": str(self._sent)}}
        key = Key(self.namespace, CANARY)
        request = Request("PATCH", CONFIG_MAPS, CONFIG_MAPS.of(key), {}, body, MERGE)
        try:
            answer = await self.api.call(request)
            if answer.is_missing:
                metadata = {"name": CANARY, "namespace": self.namespace}
                manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **body}
                request = create(CONFIG_MAPS, self.namespace, manifest)
                answer = await self.api.call(request)
            good(request, answer)
        except (ApiRefused, Unavailable) as problem:
            log.warning("The canary could not be fed.", extra={"why": str(problem)})
            return
        if self._overdue_since is None:
            self._overdue_since = self.clock()

    def came_back(self, event: Mapping[str, Any]) -> None:
        """A watch has shown the canary; the last beat of all proves that it is up to date."""
        body = event["object"]
        is_ours = body["metadata"].get("namespace") == self.namespace
        if is_ours and (body.get("data") or {}).get("beat") == str(self._sent):
            self._overdue_since = None

    @property
    def is_well(self) -> bool:
        since = self._overdue_since
        return since is None or self.clock() - since < PATIENCE_S
