"""Which program a job runs, and where the driver finds it.

The main file is in the image, in an object store or in a ConfigMap. It is the same file that runs
on one machine with ``python job.py``.
"""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from weir.api.config_problem import Problem
from weir.api.model import Model
from weir_operator.resource.string_types import ObjectName, StringPattern


class ConfigMapFile(Model):
    """A file in a ConfigMap of the job's namespace."""

    name: ObjectName
    """Name of the ConfigMap."""

    key: Annotated[
        str,
        StringPattern(
            pattern="^[-._a-zA-Z0-9]+$",
            longest=253,
            because="no ConfigMap can have this key",
            remedy="use letters, digits, '-', '_' and '.'",
        ),
    ] = "job.py"
    """Key of the file in the ConfigMap."""


class JobProgram(Model):
    """The main file and its arguments. Exactly one of file, url and configMap is given."""

    file: (
        Annotated[
            str,
            StringPattern(
                pattern=r"^/.*\.py$",
                longest=1_024,
                because="this is not the absolute path of a Python file",
                remedy="write a path in the image, as in /opt/job/job.py",
            ),
        ]
        | None
    ) = None
    """Absolute path of the main file in the image, as in /opt/job/job.py."""

    url: (
        Annotated[
            str,
            StringPattern(
                pattern=r"^s3a?://[^/?#@:]+/[^?#]+\.py$",
                longest=1_024,
                because="this is not the URL of a Python file in an S3",
                remedy="write s3://bucket/path/job.py, without keys; they come from storageSecrets",
            ),
        ]
        | None
    ) = None
    """URL of the main file, as in s3://bucket/jobs/job.py; the driver reads it when it starts, with
    the keys of storageSecrets."""

    config_map: ConfigMapFile | None = None
    """ConfigMap that holds the main file. Its content is read when a driver starts: to run a
    changed file, change restartNonce or name another ConfigMap."""

    arguments: Annotated[
        tuple[Annotated[str, Field(max_length=4_096)], ...], Field(max_length=128)
    ] = ()
    """Arguments of the program, in order."""

    def contradictions(self) -> Iterator[Problem]:
        """Yield no file, and more than one."""
        places = {"file": self.file, "url": self.url, "configMap": self.config_map}
        given = [name for name, place in places.items() if place is not None]
        if len(given) != 1:
            yield Problem(
                "",
                " and ".join(given) or "nothing",
                "a job has one main file",
                "give exactly one of file, url and configMap",
            )
