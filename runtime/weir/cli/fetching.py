"""Brings a script to this machine, from wherever it lies.

A path is a file of this machine or of the image; a URL is whatever fsspec can read. A script that
is not there will not be there later either; a storage that does not answer may.
"""

from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import fsspec

from weir.errors import JobRejected, Unavailable
from weir.storage.contract import RETRY_AFTER_S, NotFound
from weir.storage.objects import store_for
from weir.storage.s3 import SCHEMES as S3

UNNAMED = "job.py"


def at_hand(script: str, folder: Path) -> Path:
    """The script as a file; one that comes from elsewhere is put into the folder."""
    if "://" not in script:
        return _here(Path(script))
    content = store_for(script).read(script) if script.startswith(S3) else _fetched(script)
    place = folder / (PurePosixPath(urlsplit(script).path).name or UNNAMED)
    place.write_bytes(content)
    return place


def _here(script: Path) -> Path:
    if script.is_file():
        return script
    raise JobRejected(
        f"there is no script {script} on this machine."
        " Remedy: use the path of a file in the image or in a mounted volume, or a URL."
    )


def _fetched(url: str) -> bytes:
    try:
        with fsspec.open(url, "rb") as file:
            content: bytes = file.read()
    except FileNotFoundError as problem:
        raise NotFound(url) from problem
    except (ImportError, ValueError) as problem:
        raise JobRejected(
            f"the script {url} cannot be fetched: {problem}. Remedy: check the URL, or put the"
            " script where it can be fetched from, as in s3://bucket/job.py."
        ) from problem
    except OSError as problem:
        raise Unavailable(
            f"the script {url} could not be fetched: {problem}. Remedy: try again later.",
            RETRY_AFTER_S,
        ) from problem
    return content
