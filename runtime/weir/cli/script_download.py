"""Downloads a script to a local file.

A path names a file of this machine or of the image; a URL is read with fsspec. A missing script is
refused at once; a storage that does not answer is retried.
"""

from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import fsspec

from weir.errors import JobRejected, Unavailable
from weir.storage.object_store import RETRY_AFTER_S, NotFound
from weir.storage.retries import retry_until_available
from weir.storage.s3_store import SCHEMES as S3
from weir.storage.stores import store_for

UNNAMED = "job.py"
SERVER_ERRORS = 500
"""The first HTTP status that blames the server."""


def local_script(script: str, folder: Path) -> Path:
    """The script as a local file; a remote script is downloaded into the folder."""
    if "://" not in script:
        return _here(Path(script))
    fetch = store_for(script).read if script.startswith(S3) else _fetched
    content = retry_until_available(lambda: fetch(script))
    place = folder / (PurePosixPath(urlsplit(script).path).name or UNNAMED)
    place.write_bytes(content)
    return place


def _here(script: Path) -> Path:
    if script.is_file():
        return script
    raise JobRejected(
        f"there is no script {script} on this machine",
        "no file has this path",
        "use the path of a file in the image or in a mounted volume, or a URL",
    )


def _fetched(url: str) -> bytes:
    try:
        with fsspec.open(url, "rb") as file:
            content: bytes = file.read()
    except (ImportError, ValueError) as problem:
        raise JobRejected(
            f"the script {url} cannot be fetched",
            str(problem),
            "check the URL, or put the script where it can be fetched from, as in "
            "s3://bucket/job.py",
        ) from problem
    except OSError as problem:
        if _is_missing(problem):
            raise NotFound(url) from problem
        why = problem.__cause__ or problem
        raise Unavailable(
            f"the script {url} could not be fetched",
            str(why),
            "check the URL, or wait",
            retry_after=RETRY_AFTER_S,
        ) from problem
    return content


def _is_missing(problem: OSError) -> bool:
    """Whether the file is missing: fsspec reports an unreachable server in the same way."""
    cause = problem.__cause__
    is_away = isinstance(cause, OSError) or getattr(cause, "status", 0) >= SERVER_ERRORS
    return isinstance(problem, FileNotFoundError) and not is_away
