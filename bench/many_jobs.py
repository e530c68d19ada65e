"""Measures how many jobs one operator can manage, on one core, against a real API server.

This process simulates nodes and drivers; the operator is a separate process, pinned to
one core. First all jobs are made as fast as the API server takes them; when they run, some more are
made at a steady pace, and then their drivers complete checkpoints, which their statuses must show.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import operator_process
from crash_scenarios import job_object, job_spec
from fake_driver import PretendDriver
from fake_kubelet import FakeKubelet, Pace, fake_kubelet
from fake_storage import Completion
from local_api_server import bare_api, free_ports
from operator_process import OperatorProcess, Place
from raw_api_client import GROUP, JOBS, Client, Object, connected, ours

NAMESPACE = "many"
CORE = "0"
PATIENCE_S = 900.0
GLANCE_S = 0.2
IN_TIME_S, CAUGHT_UP = 1.0, 15
"""At so many glances in a row no checkpoint waits longer for its status: nothing is left to do."""
MAKERS = 8
"""How many jobs are being made at once, when they are made as fast as possible."""


@dataclass(slots=True)
class Watch:
    """When what was seen of each job, by this process's clock."""

    made: dict[str, float] = field(default_factory=dict)
    pods: dict[str, float] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    """Jobs whose status shows that all subtasks run."""
    completed: dict[tuple[str, int], float] = field(default_factory=dict)
    lags: list[float] = field(default_factory=list)
    """From a completed checkpoint to the status that shows it."""

    def heard_of_pod(self, pod: Object) -> None:
        self.pods.setdefault(pod["metadata"]["labels"]["weir.dev/job"], time.monotonic())

    def heard_of_checkpoint(self, driver: PretendDriver, done: Completion) -> None:
        self.completed[driver.storage.directory.rpartition("/")[2], done.number] = time.monotonic()

    def heard_of_job(self, job: Object) -> None:
        """A status shows one checkpoint, and with it all before."""
        newest = (job.get("status", {}).get("lastCheckpoint") or {}).get("id", 0)
        name = job["metadata"]["name"]
        if "runningSince" in job.get("status", {}).get("driver", {}):
            self.running.add(name)
        shown = [key for key in self.completed if key[0] == name and key[1] <= newest]
        for key in shown:
            self.lags.append(time.monotonic() - self.completed.pop(key))

    def longest_lag(self) -> float:
        """For how long the oldest checkpoint waits that no status shows."""
        return time.monotonic() - min(self.completed.values(), default=time.monotonic())

    def waits(self, names: list[str]) -> list[float]:
        return [self.pods[name] - self.made[name] for name in names]


@dataclass(slots=True)
class Bench:
    """One operator and its jobs."""

    client: Client
    watch: Watch
    operator: OperatorProcess

    async def make(self, name: str, checkpoint_interval: str) -> None:
        spec = job_spec()
        spec["checkpointing"]["interval"] = checkpoint_interval
        self.watch.made[name] = time.monotonic()
        await self.client.create(ours(NAMESPACE, JOBS), job_object(NAMESPACE, name, spec))

    async def until(self, what: str, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if self.operator.has_ended or time.monotonic() > deadline:
                sys.exit(f"waited in vain: {what}\n{self.operator.last_words()}")
            await asyncio.sleep(GLANCE_S)

    def processor_s(self) -> float:
        """Seconds of a core that the operator has used."""
        stat = Path(f"/proc/{self.operator.process.pid}/stat").read_text()
        ticks = stat.rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> tuple[int, int]:
        """What the operator holds now, and what it held at most."""
        status = Path(f"/proc/{self.operator.process.pid}/status").read_text()
        now, most = (re.search(rf"{key}:\s+(\d+)", status) for key in ("VmRSS", "VmHWM"))
        assert now is not None, "a living process has memory"
        assert most is not None, "and had"
        return int(now[1]) >> 10, int(most[1]) >> 10


async def in_a_rush(bench: Bench, names: list[str], interval: str) -> float:
    """Jobs a minute, from the first job to the last driver's pod."""
    room = asyncio.Semaphore(MAKERS)

    async def made(name: str) -> None:
        async with room:
            await bench.make(name, interval)

    began = time.monotonic()
    await asyncio.gather(*(made(name) for name in names))
    await bench.until("a pod for every job", lambda: all(n in bench.watch.pods for n in names))
    last = max(bench.watch.pods[name] for name in names)
    return 60 * len(names) / (last - began)


async def settled(bench: Bench, names: list[str]) -> float:
    """Seconds until every status shows that its job runs, and the operator has caught up."""
    began = time.monotonic()
    await bench.until("all jobs run", lambda: bench.watch.running.issuperset(names))
    in_time = 0
    while in_time < CAUGHT_UP:
        await asyncio.sleep(GLANCE_S)
        in_time = 0 if bench.watch.longest_lag() > IN_TIME_S else in_time + 1
    return time.monotonic() - began


async def steadily(bench: Bench, names: list[str], interval: str, a_minute: int) -> list[float]:
    """Seconds from each job to its driver's pod."""
    began = time.monotonic()
    for number, name in enumerate(names):
        await asyncio.sleep(max(0.0, began + number * 60 / a_minute - time.monotonic()))
        await bench.make(name, interval)
    await bench.until("their pods", lambda: all(name in bench.watch.pods for name in names))
    return bench.watch.waits(names)


async def lagging(bench: Bench, seconds: float) -> list[float]:
    """Seconds from a completed checkpoint to the status that shows it."""
    bench.watch.completed.clear()
    bench.watch.lags.clear()
    await asyncio.sleep(seconds)
    await bench.until("a checkpoint in a status", lambda: len(bench.watch.lags) > 0)
    return [*bench.watch.lags, *(time.monotonic() - at for at in bench.watch.completed.values())]


def percentile(figures: list[float], share: float) -> float:
    ordered = sorted(figures)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 3)


@asynccontextmanager
async def opened(folder: Path, checkpoint_s: float) -> AsyncIterator[Bench]:
    (port,) = free_ports(1)
    with bare_api(folder) as api:
        place = Place(api.kubeconfig(), "", port, folder / "operator.log")
        async with (
            connected(api) as client,
            fake_kubelet(client, port, Pace(checkpoint_s=checkpoint_s)) as kubelet,
        ):
            metadata = {"name": NAMESPACE}
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            await client.create("/api/v1/namespaces", body)
            operator = await operator_process.begin(place, ("taskset", "-c", CORE))
            bench = Bench(client, Watch(), operator)
            watching = asyncio.create_task(_watched(bench, kubelet))
            try:
                yield bench
            finally:
                watching.cancel()
                await operator.kill()
            assert not kubelet.failures, kubelet.failures


async def _watched(bench: Bench, kubelet: FakeKubelet) -> None:
    kubelet.heard_of_pod = bench.watch.heard_of_pod
    kubelet.completed = bench.watch.heard_of_checkpoint
    while True:
        async for _, job in bench.client.watch(f"{GROUP}/{JOBS}"):
            bench.watch.heard_of_job(job)


async def measured(wanted: argparse.Namespace, folder: Path) -> dict[str, object]:
    rush = [f"rush-{number}" for number in range(wanted.jobs)]
    steady = [f"steady-{number}" for number in range(wanted.more)]
    interval = f"{int(wanted.checkpoint_s * 1_000)} ms"
    async with opened(folder, wanted.checkpoint_s) as bench:
        await steadily(bench, ["first"], interval, wanted.a_minute)  # the operator is up then
        report(f"making {len(rush)} jobs")
        before = bench.processor_s()
        a_minute = await in_a_rush(bench, rush, interval)
        deployed = bench.processor_s()
        report(f"{a_minute:.0f} jobs a minute; waiting until they run")
        settling = await settled(bench, rush)
        report(f"they run {settling:.0f} s later; {len(steady)} more, {wanted.a_minute} a minute")
        waits = await steadily(bench, steady, interval, wanted.a_minute)
        report(f"watching {len(rush) + len(steady)} jobs for {wanted.seconds:.0f} s")
        rested = bench.processor_s()
        lags = await lagging(bench, wanted.seconds)
        watched = bench.processor_s()
        now, most = bench.memory_mib()
    return {
        "jobs": len(bench.watch.made),
        "jobs_a_minute": round(a_minute),
        "settled_s": round(settling, 1),
        "processor_ms_a_job": round(1_000 * (deployed - before) / len(rush)),
        "processor_share": round((watched - rested) / wanted.seconds, 3),
        "pod_p50_s": percentile(waits, 0.5),
        "pod_p99_s": percentile(waits, 0.99),
        "checkpoints": len(lags),
        "lag_p50_s": percentile(lags, 0.5),
        "lag_p99_s": percentile(lags, 0.99),
        "memory_mib": now,
        "most_memory_mib": most,
    }


def report(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the bench shows it


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--more", type=int, default=100)
    parser.add_argument("--a-minute", type=int, default=100)
    parser.add_argument("--checkpoint-s", type=float, default=30.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        report(json.dumps(asyncio.run(measured(wanted, Path(directory)))))


if __name__ == "__main__":
    main()
