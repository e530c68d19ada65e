"""URLs of directories that hold checkpoints and savepoints.

Every scheme here is one that fsspec can write to, so that a typing error is found when the job is
submitted and not when its first checkpoint fails. Keys and tokens have no place in such a URL: it
is logged, shown in the dashboard and stored in manifests. The storage checks whether the directory
exists and is writable.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic.json_schema import JsonSchemaValue

from weir.api.config_problem import InvalidValue, names_a_password, shown
from weir.api.constraint import Constraint

MEMORY = "memory"
DURABLE_SCHEMES = (
    "file",
    "s3",
    "s3a",
    "gs",
    "gcs",
    "abfs",
    "abfss",
    "az",
    "hdfs",
    "webhdfs",
    "oci",
    "oss",
    "sftp",
    "smb",
)


def is_memory(url: str | None) -> bool:
    """Tell whether what is stored there ends with the driver."""
    return url is not None and url.startswith(f"{MEMORY}://")


@dataclass(frozen=True, slots=True)
class _Url(Constraint):
    schemes: tuple[str, ...]

    def check(self, url: str) -> str:
        scheme, separator, rest = url.partition("://")
        if not separator:
            raise InvalidValue("this is not a URL", self._how_to_write(url))
        if scheme == MEMORY and MEMORY not in self.schemes:
            raise InvalidValue(
                "memory:// is the driver's heap and ends with the driver",
                "use a directory that outlives the job, as in s3://bucket/directory",
            )
        if scheme not in self.schemes:
            known = ", ".join(self.schemes)
            raise InvalidValue(
                f'nothing can be stored under "{shown(scheme)}://"', f"use one of {known}"
            )
        _check_location(url, scheme, rest)
        return url

    @staticmethod
    def _how_to_write(url: str) -> str:
        if url.startswith("/"):
            return f"write file://{shown(url)}"
        return "write scheme://directory, as in file:///data/checkpoints or s3://bucket/checkpoints"

    def shown_in(self, schema: JsonSchemaValue) -> JsonSchemaValue:
        return schema | {"pattern": rf"^({'|'.join(self.schemes)})://"}


def _check_location(url: str, scheme: str, rest: str) -> None:
    if names_a_password(url):
        raise InvalidValue(
            "the URL holds a password, and URLs are logged and stored",
            "take it out and give the keys in the environment, from a Secret",
        )
    if "?" in rest:
        raise InvalidValue(
            "a directory has no parameters, and they could be secrets",
            "end the URL before the question mark",
        )
    if scheme == "file" and not rest.startswith("/"):
        raise InvalidValue("the path is not absolute", f"write file:///{shown(rest)}")
    if scheme not in ("file", MEMORY) and (not rest or rest.startswith("/")):
        raise InvalidValue(
            f"{scheme}:// needs a bucket or host",
            f"write {scheme}://name/directory",
        )


StorageUrl = Annotated[str, _Url((*DURABLE_SCHEMES, MEMORY))]
"""Where checkpoints go: a directory of any durable scheme, or the driver's memory."""

DurableUrl = Annotated[str, _Url(DURABLE_SCHEMES)]
"""A directory that outlives the driver."""
