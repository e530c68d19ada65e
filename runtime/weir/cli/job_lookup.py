"""Finds the job of a command: the one at an address, the one with a name, or the only one."""

from weir.cli.client import Client
from weir.errors import JobRejected
from weir.rest import job_registry
from weir.rest.job_registry import Endpoint


def find_job(job: str, url: str, token: str) -> Client:
    """A client of the job; the URL takes precedence, and empty text means "not given"."""
    if url:
        return Client(url, token)
    endpoint = _named(job) if job else _only()
    return Client(endpoint.url, token or endpoint.token, endpoint.authority)


def running_jobs() -> list[Endpoint]:
    """The jobs that this user runs on this machine, by name, each with its address and token."""
    return job_registry.running()


def _named(job: str) -> Endpoint:
    found = job_registry.find(job)
    if found is not None:
        return found
    others = [endpoint.job for endpoint in job_registry.running()]
    running = f"these do: {', '.join(others)}" if others else "nor does any other"
    raise JobRejected(
        f"no job {job} of yours runs on this machine",
        running,
        "start it with `weir run`, or name one elsewhere with --url and --token",
    )


def _only() -> Endpoint:
    found = job_registry.running()
    if len(found) == 1:
        return found[0]
    if not found:
        raise JobRejected(
            "no job of yours runs on this machine",
            "no driver has registered its API for this user",
            "start one with `weir run job.py`, or name one elsewhere with --url and --token",
        )
    names = ", ".join(endpoint.job for endpoint in found)
    raise JobRejected(
        "the command does not name its job",
        f"{len(found)} jobs run on this machine: {names}",
        f"name one of them, as in `{found[0].job}` after the command",
    )
