"""A private file for each job of this machine, by which the command line finds it.

A job writes the address of its API and its token into the file, which only its owner can read. A
reader that finds a file of a dead process removes the file.
"""

import os
import tempfile
from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

SUFFIX = ".json"


class Endpoint(BaseModel):
    """The address and the token of a job's API. The token is never shown."""

    model_config = ConfigDict(frozen=True)

    job: str
    url: str
    token: str = Field(repr=False)
    pid: int = Field(gt=0)
    authority: str = ""
    """File of the certificate that vouches for the job's own, where the URL is an https one."""


def directory() -> Path:
    """The registry of this user; it ends with the login session where the system supports that."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return (Path(runtime) if runtime else Path.home() / ".local" / "state") / "weir"


def write(endpoint: Endpoint) -> Path:
    """Replace whatever an earlier job of that name has left."""
    place = _path(endpoint.job)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=".")  # with mode 0600
    with os.fdopen(handle, "w") as file:
        file.write(endpoint.model_dump_json())
    Path(name).replace(place)
    return place


def find(job: str) -> Endpoint | None:
    return _read(_path(job))


def running() -> list[Endpoint]:
    """Of every job that runs here, by name."""
    if not directory().is_dir():
        return []
    found = [_read(path) for path in sorted(directory().glob(f"[!.]*{SUFFIX}"))]
    return [endpoint for endpoint in found if endpoint is not None]


def remove(endpoint: Endpoint) -> None:
    """The job is over; a file that another process has written since stays."""
    place = _path(endpoint.job)
    if _parsed(place) == endpoint:
        place.unlink(missing_ok=True)


def _path(job: str) -> Path:
    return directory() / f"{quote(job, safe='')}{SUFFIX}"


def _read(path: Path) -> Endpoint | None:
    endpoint = _parsed(path)
    if endpoint is not None and not _is_alive(endpoint.pid):
        path.unlink(missing_ok=True)
        return None
    return endpoint


def _parsed(path: Path) -> Endpoint | None:
    """The endpoint in a file; None if the file is missing or has other content."""
    try:
        return Endpoint.model_validate_json(path.read_bytes())
    except (FileNotFoundError, PermissionError, ValidationError):
        return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
