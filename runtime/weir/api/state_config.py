"""The settings of keyed state: its backend, and local recovery.

The memory of a backend, and whether a local copy survives its pod, depend on the placement of the
slots. Local recovery stays off where a copy would not survive, and the job's status reports that.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, StrictBool
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from weir.api.config_problem import InvalidValue
from weir.api.model import Model


class StateBackend(StrEnum):
    """The kinds of keyed state."""

    HASHMAP = "hashmap"
    """In the memory of the slot."""


@dataclass(frozen=True, slots=True)
class UnavailableChoice:
    """A value that users of Flink know and that is refused by name, for use in ``Annotated``.

    The schema lists it beside the choices, so that an API server lets the rule about it explain
    why it is refused.
    """

    value: str
    reason: str
    remedy: str

    def check(self, given: object) -> object:
        if given == self.value:
            raise InvalidValue(self.reason, self.remedy)
        return given

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        choices = handler.resolve_ref_schema(handler(schema))["enum"]
        return {"type": "string", "enum": [*choices, self.value]}


ROCKSDB = UnavailableChoice(
    "rocksdb",
    reason="RocksDB is not available in this version",
    remedy="use hashmap, which keeps state in memory",
)


class StateConfig(Model):
    """Where keyed state lives while the job runs."""

    backend: Annotated[StateBackend, ROCKSDB] = StateBackend.HASHMAP
    """Where keyed state is kept: hashmap, in memory. rocksdb is not available in this version and
    is refused."""

    local_recovery: StrictBool = False
    """Keep a second copy of the state on local disk to restore from, where that disk survives."""
