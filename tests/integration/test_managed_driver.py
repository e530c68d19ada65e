"""A job under an operator: environment variables configure it, its API and last report show it."""

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from real_job import LOG_TAIL, SEARCHED
from real_processes import end_session
from throwaway_certificates import a_certificate
from wait_until import until
from weir.api.report import JobPhase, JobReport, Outcome
from weir.rest import job_registry

JOB, TOKEN = "orders-1", "the-token-of-the-job"

SCRIPT = """
from weir import WeirSession

session = (
    WeirSession.builder.appName("on-my-laptop")
    .config("weir.parallelism", 7)
    .config("weir.checkpointing.storage", "file:///nowhere/at/all")
    .getOrCreate()
)
rows = session.readStream.format("generator").option("rowsPerSecond", 200).load()
rows.writeStream.format("noop").queryName("mine").uid("nothing").start()
"""


@dataclass
class Driven:
    """The drivers of one job, as an operator would start them."""

    home: Path
    processes: list = field(default_factory=list)

    def __post_init__(self):
        (self.home / "job.py").write_text(SCRIPT)
        tls = a_certificate(self.home, "job")
        folder = self.home / "tls"
        folder.mkdir()
        for file, name in (
            (tls.certificate, "tls.crt"),
            (tls.key, "tls.key"),
            (tls.authority, "ca.crt"),
        ):
            shutil.copy(file, folder / name)
        settings = {
            "checkpointing": {"interval": "200 ms", "storage": f"file://{self.home}/checkpoints"},
            "tlsDir": str(folder),
        }
        (self.home / "job.json").write_text(json.dumps(settings))
        self.trusting = ssl.create_default_context(cafile=tls.authority)
        self.trusting.check_hostname = False

    @property
    def log(self):
        return self.home / f"log-{len(self.processes)}"

    @property
    def last_report(self):
        return JobReport.model_validate_json((self.home / "termination-log").read_bytes())

    def start(self, **variables):
        attempt = len(self.processes) + 1
        with (self.home / f"log-{attempt}").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "weir.cli", "drive", self.home / "job.py"],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(SEARCHED),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "WEIR_CONFIG": str(self.home / "job.json"),
                    "WEIR_JOB": JOB,
                    "WEIR_ATTEMPT": str(attempt),
                    "WEIR_DEPLOYMENT": f"{JOB}-{attempt}",
                    "WEIR_TOKEN": TOKEN,
                    "WEIR_TERMINATION_LOG": str(self.home / "termination-log"),
                    **variables,
                },
            )
        self.processes.append(process)
        return process

    def ask(self, verb, path, **headers):
        endpoint = job_registry.find(JOB)
        if endpoint is None:
            return None
        bearer = {"Authorization": f"Bearer {TOKEN}", **headers}
        url = f"{endpoint.url}/v1/job/{path}"
        try:
            return httpx.request(verb, url, headers=bearer, verify=self.trusting)
        except httpx.TransportError:
            return None

    def report(self):
        answer = self.ask("GET", "report")
        return None if answer is None else JobReport.model_validate_json(answer.content)

    def explain(self):
        return self.log.read_text(errors="replace")[-LOG_TAIL:]

    def until_it_has_a_checkpoint(self):
        def looked():
            report = self.report()
            return report if report is not None and report.newest is not None else None

        return until("a checkpoint is reported", looked, self.explain)

    def end(self):
        process = self.processes[-1]
        until("the driver ends", lambda: process.poll() is not None, self.explain)
        return process.returncode


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    driven = Driven(tmp_path)
    yield driven
    for process in driven.processes:
        end_session(process.pid)
        process.wait()


@pytest.mark.timeout(180)
def test_a_driver_is_asked_over_tls_and_stops_with_a_savepoint(job):
    """K2 K5 X1: name and settings are the operator's, and the savepoint is in the last report."""
    job.start()
    report = job.until_it_has_a_checkpoint()
    job.ask("POST", "stop", **{"Idempotency-Key": "upgrade-1"})

    assert job.end() == 0, job.explain()
    assert (report.attempt, report.phase, report.scheduler_running) == (1, JobPhase.RUNNING, True)
    assert report.newest.path.startswith(f"file://{job.home}/checkpoints/{JOB}/chk-")
    (request,) = job.last_report.requests
    assert job.last_report.phase is JobPhase.STOPPED
    assert (request.id, request.outcome) == ("upgrade-1", Outcome.COMPLETED)
    assert Path(request.path.removeprefix("file://"), "_metadata").exists()


@pytest.mark.timeout(180)
def test_a_driver_that_is_sent_away_leaves_how_far_it_came_and_no_less_is_accepted(job):
    """C12 R8 K4: a checkpoint was taken, and the next driver may not begin before it."""
    driver = job.start()
    before = job.until_it_has_a_checkpoint()
    driver.send_signal(signal.SIGTERM)
    assert job.end() == 128 + signal.SIGTERM, job.explain()
    left = job.last_report
    assert left.phase is JobPhase.RUNNING
    assert left.newest.id > before.newest.id
    assert f"succeeded: checkpoint {left.newest.id} is at {left.newest.path}." in job.explain()

    job.start(WEIR_LOWEST_CHECKPOINT=str(left.newest.id + 1))
    assert job.end() == 2, job.explain()
    refused = job.last_report
    assert (refused.attempt, refused.phase, refused.is_rejected) == (2, JobPhase.FAILED, True)
    assert f"checkpoint {left.newest.id + 1} or a newer one was required" in refused.why
