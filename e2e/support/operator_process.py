"""The operator as a separate process, which can be killed at any moment and started again.

It gets a kubeconfig and its namespace; its log goes into a file. A second process in the same place
takes over from the first at once, because both have the same identity.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LAST_WORDS = 4_000
EVERYBODY = '[{"ipBlock": {"cidr": "0.0.0.0/0"}}]'
"""Such an operator runs outside of the cluster."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operator works."""

    kubeconfig: Path
    namespace: str
    """Empty: everywhere."""
    driver_port: int
    log: Path

    def command(self, prefix: Sequence[str] = ()) -> list[str]:
        return [
            *prefix,
            *(sys.executable, "-m", "weir_operator"),
            *("--kubeconfig", str(self.kubeconfig)),
            *("--namespaces", self.namespace),
            *("--own-namespace", self.namespace or "default"),
            *("--identity", "the-same"),
            *("--driver-port", str(self.driver_port)),
            *("--driver-peers", EVERYBODY),
            *("--health-port", "0"),
            *("--metrics-port", "0"),
        ]


@dataclass(slots=True)
class OperatorProcess:
    """One that runs, or has ended."""

    place: Place
    process: asyncio.subprocess.Process

    @property
    def has_ended(self) -> bool:
        return self.process.returncode is not None

    async def kill(self) -> None:
        """As a machine that loses power does; it is gone when this returns."""
        if not self.has_ended:
            self.process.kill()
        await self.process.wait()

    def last_words(self) -> str:
        return self.place.log.read_text(errors="replace")[-LAST_WORDS:]


async def begin(place: Place, prefix: Sequence[str] = ()) -> OperatorProcess:
    """Start one; what it says is added to what others have said there."""
    with place.log.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *place.command(prefix),
            stdout=log,
            stderr=log,
            stdin=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    return OperatorProcess(place, process)
