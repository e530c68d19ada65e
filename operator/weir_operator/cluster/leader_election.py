"""Leadership: of several operators only the one that holds the Lease acts (spec K9).

Whether a holder is alive is judged by our own clock: its Lease counts as abandoned when it has not
changed for as long as it is granted, whatever the times written in it say. A leader that could not
renew in time stops before anybody else may begin. Should two act all the same, the second loses at
the versions of the objects that it writes.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic

from weir.errors import Fenced, Unavailable
from weir_operator.cluster.api_paths import LEASES, Key
from weir_operator.cluster.api_requests import Answer, Api, Json, Request, create, good, read

log = logging.getLogger("weir_operator.lease")

GRANTED_S = 15
RENEW_WITHIN_S = 10.0
RETRY_S = 2.0


@dataclass(slots=True)
class Lease:
    """One operator's view of the Lease."""

    api: Api
    key: Key
    identity: str
    clock: Callable[[], float] = monotonic
    _seen: Json = field(default_factory=dict)
    _seen_at: float = 0.0

    async def acquire(self) -> None:
        """Return once the Lease is ours."""
        is_ours = await self._tried()
        while not is_ours:
            await asyncio.sleep(RETRY_S)
            is_ours = await self._tried()
        log.info("This operator leads.", extra={"identity": self.identity})

    async def keep(self) -> None:
        """Renew until it cannot be; then raise ``Fenced``."""
        renewed = self.clock()
        while True:
            await asyncio.sleep(RETRY_S)
            if await self._tried():
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
        """Let the next one begin at once."""
        if self._holder() == self.identity:
            await self._put({**self._spec(), "holderIdentity": "", "leaseDurationSeconds": 1})

    async def _tried(self) -> bool:
        try:
            async with asyncio.timeout(RENEW_WITHIN_S / 2):
                return await self._try()
        except (Unavailable, TimeoutError) as problem:
            log.warning("The Lease could not be reached.", extra={"why": str(problem)})
            return False

    async def _try(self) -> bool:
        answer = await self.api.call(read(LEASES, self.key))
        if answer.is_missing:
            return await self._create()
        self._note(good(read(LEASES, self.key), answer))
        holder = self._holder()
        if holder not in (self.identity, "") and not self._is_abandoned():
            return False
        return await self._put(self._spec())

    def _note(self, lease: Json) -> None:
        version = lease["metadata"]["resourceVersion"]
        if not self._seen or self._seen["metadata"]["resourceVersion"] != version:
            self._seen, self._seen_at = lease, self.clock()

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
        request = create(LEASES, self.key.namespace, body)
        return self._written(request, await self.api.call(request))

    async def _put(self, spec: Json) -> bool:
        kept = {name: value for name, value in self._seen.items() if name != "spec"}
        request = Request("PUT", LEASES, LEASES.of(self.key), body={**kept, "spec": spec})
        return self._written(request, await self.api.call(request))

    def _written(self, request: Request, answer: Answer) -> bool:
        """False if somebody else was faster."""
        if answer.is_conflict or answer.is_missing:
            return False
        self._note(good(request, answer))
        return True
