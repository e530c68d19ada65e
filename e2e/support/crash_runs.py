"""Runs scenarios with an operator that is killed at one of its writes and replaced by another.

Each run has a separate namespace, proxy and operator, so that many run concurrently against one API
server. The caller compares the results.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import operator_process
from crash_scenarios import Outcome, Scenario, Sight, Stage, Unsettled
from fake_kubelet import FakeKubelet, Pace, fake_kubelet
from killing_proxy import Kill, Killer, Side, killing_proxy
from local_api_server import BareApi, write_kubeconfig
from operator_process import OperatorProcess, Place
from raw_api_client import Client, connected
from server_ports import free_server_ports

AT_ONCE = 6 * (os.cpu_count() or 1)
"""Plays mostly wait, but each starts two Pythons."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A scene, and where its operator dies; nowhere, to see how the scene is meant to end."""

    scenario: Scenario
    kill: Kill | None = None

    def __str__(self) -> str:
        return f"{self.scenario.name} {self.kill or 'undisturbed'}"


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a cell."""

    cell: Cell
    writes: tuple[str, ...]
    outcome: Outcome | None
    broken: tuple[str, ...]
    """Promises that were broken, and whatever else went wrong."""


@dataclass(slots=True)
class CrashRunner:
    """One API server, one kubelet, and room for several plays."""

    client: Client
    kubelet: FakeKubelet
    driver_port: int
    folder: Path
    room: asyncio.Semaphore
    played: int = 0

    async def play_all(self, cells: list[Cell]) -> list[Played]:
        return list(await asyncio.gather(*(self.crash_run(cell) for cell in cells)))

    async def crash_run(self, cell: Cell) -> Played:
        async with self.room:
            self.played += 1
            return await _Play(self, cell, f"{cell.scenario.name}-{self.played}").played()


class _Play:
    """One cell, from an empty namespace to its outcome."""

    def __init__(self, crash_runner: CrashRunner, cell: Cell, namespace: str) -> None:
        self._theatre = crash_runner
        self._cell = cell
        self._stage = Stage(crash_runner.client, crash_runner.kubelet, namespace)
        self._killer = Killer(self._end_operator, cell.kill)
        self._operator: OperatorProcess | None = None

    async def played(self) -> Played:
        rest, namespace = self._theatre.kubelet.rest, self._stage.namespace
        rest.killers[namespace] = self._killer
        sight, broken = None, []
        try:
            await self._stage.open()
            async with killing_proxy(self._theatre.client, self._killer) as url:
                try:
                    sight = await self._until_over(url)
                finally:
                    await self._end_operator()  # so that nothing connects to a closing port
        except Unsettled as unsettled:
            broken.append(f"{unsettled}\n{self._last_words()}")
        finally:
            del rest.killers[namespace]
        broken += self._theatre.kubelet.storage(namespace, "job").broken
        outcome = None if sight is None else Outcome.of(sight)
        return Played(self._cell, tuple(self._killer.writes), outcome, tuple(broken))

    async def _until_over(self, url: str) -> Sight:
        scenario, stage = self._cell.scenario, self._stage
        place = self._place(url)
        self._operator = await operator_process.begin(place)
        await scenario.prepare(stage)
        self._killer.is_armed = True
        await scenario.act(stage)
        over = asyncio.create_task(stage.until(f"{scenario.name} is over", scenario.is_over))
        struck = asyncio.create_task(self._killer.has_struck.wait())
        try:
            await asyncio.wait((over, struck), return_when=asyncio.FIRST_COMPLETED)
            if self._killer.has_struck.is_set():
                self._operator = await operator_process.begin(place)
            return await over
        finally:
            struck.cancel()

    def _place(self, url: str) -> Place:
        folder = self._theatre.folder / self._stage.namespace
        folder.mkdir()
        kubeconfig = write_kubeconfig(folder / "kubeconfig", {"server": url}, {})
        port, log = self._theatre.driver_port, folder / "operator.log"
        return Place(kubeconfig, self._stage.namespace, port, log)

    async def _end_operator(self) -> None:
        if self._operator is not None:
            await self._operator.kill()

    def _last_words(self) -> str:
        return "" if self._operator is None else self._operator.last_words()


@asynccontextmanager
async def crash_runner(api: BareApi, folder: Path) -> AsyncIterator[CrashRunner]:
    (port,) = free_server_ports(1)
    async with connected(api) as client, fake_kubelet(client, port, Pace()) as kubelet:
        yield CrashRunner(client, kubelet, port, folder, asyncio.Semaphore(AT_ONCE))
        assert not kubelet.failures, kubelet.failures


def cells_of(played: Played) -> list[Cell]:
    """Every death that an undisturbed play could have had."""
    writes = range(1, len(played.writes) + 1)
    return [Cell(played.cell.scenario, Kill(write, side)) for write in writes for side in Side]
