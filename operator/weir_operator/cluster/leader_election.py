"""Leader election: of several operators only the holder of the Lease acts (spec K9).

Whether a holder is alive is determined with the local clock: its Lease has expired when it has not
changed for its duration, whatever times are written in it. A leader that fails to renew in time
stops before another may start. If two act nevertheless, the second fails at the resource versions
of the objects that it writes.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic

from weir.errors import Fenced, Unavailable
from weir_operator.cluster.api_paths import LEASES, NamespacedName
from weir_operator.cluster.api_requests import (
    ApiRequest,
    ApiResponse,
    ApiServer,
    Json,
    create_request,
    get_request,
    successful_body,
)

log = logging.getLogger("weir_operator.leader_election")

GRANTED_S = 15
RENEW_WITHIN_S = 10.0
RETRY_S = 2.0


@dataclass(slots=True)
class LeaderElector:
    """One operator's view of the Lease."""

    api: ApiServer
    key: NamespacedName
    identity: str
    clock: Callable[[], float] = monotonic
    _seen: Json = field(default_factory=dict)
    _seen_at: float = 0.0

    async def acquire(self) -> None:
        """Return once this operator holds the Lease."""
        is_ours = await self._try_within_timeout()
        while not is_ours:
            await asyncio.sleep(RETRY_S)
            is_ours = await self._try_within_timeout()
        log.info("This operator is the leader.", extra={"identity": self.identity})

    async def renew_forever(self) -> None:
        """Renew until that fails; then raise ``Fenced``."""
        renewed = self.clock()
        while True:
            await asyncio.sleep(RETRY_S)
            if await self._try_within_timeout():
                renewed = self.clock()
            elif self._holder() not in (self.identity, ""):
                raise Fenced(
                    f"the Lease {self.key} is lost",
                    f"it is held by {self._holder()} now",
                )
            elif self.clock() - renewed > RENEW_WITHIN_S:
                raise Fenced(
                    f"the Lease {self.key} is lost",
                    f"it was not renewed for {RENEW_WITHIN_S:.0f} s",
                )

    async def release(self) -> None:
        """Release the Lease, so that the next operator can acquire it at once."""
        if self._holder() == self.identity:
            await self._put({**self._spec(), "holderIdentity": "", "leaseDurationSeconds": 1})

    async def _try_within_timeout(self) -> bool:
        try:
            async with asyncio.timeout(RENEW_WITHIN_S / 2):
                return await self._try()
        except (Unavailable, TimeoutError) as problem:
            log.warning("The Lease could not be read or written.", extra={"why": str(problem)})
            return False

    async def _try(self) -> bool:
        answer = await self.api.call(get_request(LEASES, self.key))
        if answer.is_not_found:
            return await self._create()
        self._record(successful_body(get_request(LEASES, self.key), answer))
        holder = self._holder()
        if holder not in (self.identity, "") and not self._is_abandoned():
            return False
        return await self._put(self._spec())

    def _record(self, elector: Json) -> None:
        version = elector["metadata"]["resourceVersion"]
        if not self._seen or self._seen["metadata"]["resourceVersion"] != version:
            self._seen, self._seen_at = elector, self.clock()

    def _holder(self) -> str:
        return str((self._seen.get("spec") or {}).get("holderIdentity") or "")

    def _is_abandoned(self) -> bool:
        granted = (self._seen.get("spec") or {}).get("leaseDurationSeconds") or GRANTED_S
        return self.clock() - self._seen_at > float(granted)

    def _spec(self) -> Json:
        before = self._seen.get("spec") or {}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        is_ours = before.get("holderIdentity") == self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": GRANTED_S,
            "acquireTime": before.get("acquireTime", now) if is_ours else now,
            "renewTime": now,
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (not is_ours),
        }

    async def _create(self) -> bool:
        metadata = {"name": self.key.name, "namespace": self.key.namespace}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": self._spec(),
        }
        request = create_request(LEASES, self.key.namespace, body)
        return self._written(request, await self.api.call(request))

    async def _put(self, spec: Json) -> bool:
        kept = {name: value for name, value in self._seen.items() if name != "spec"}
        request = ApiRequest(
            "PUT", LEASES, LEASES.object_path(self.key), body={**kept, "spec": spec}
        )
        return self._written(request, await self.api.call(request))

    def _written(self, request: ApiRequest, answer: ApiResponse) -> bool:
        """False if another operator wrote first."""
        if answer.is_conflict or answer.is_not_found:
            return False
        self._record(successful_body(request, answer))
        return True
