"""Quantities of CPU and memory as Kubernetes writes them: ``500m``, ``2``, ``1Gi``.

They are kept as text, because Kubernetes parses them itself; here they are only compared, so that a
request above its limit is rejected before a pod is. Weir's own sizes and durations have other
units.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from weir.api.config_problem import InvalidValue

_BINARY = {unit: 1024**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_DECIMAL = {unit: 1000**power for power, unit in enumerate(("k", "M", "G", "T", "P", "E"), 1)}
_UNITS = {"": Decimal(1), "m": Decimal("0.001")} | {
    unit: Decimal(factor) for unit, factor in (_BINARY | _DECIMAL).items()
}
_SHAPE = r"^([0-9]{1,15}(\.[0-9]{1,9})?)(m|Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$"
_LONGEST = 32


def quantity_value(amount: str) -> Decimal:
    """The quantity in cores or bytes."""
    parts = re.fullmatch(_SHAPE, amount)
    assert parts is not None, "only checked amounts are compared"
    return Decimal(parts[1]) * _UNITS[parts[3] or ""]


@dataclass(frozen=True, slots=True)
class _KubernetesQuantity:
    def read(self, value: object) -> str:
        """YAML reads ``cpu: 2`` as a number, and so does Kubernetes."""
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or not re.fullmatch(_SHAPE, value):
            raise InvalidValue(
                "Kubernetes cannot read this amount",
                "write a number and perhaps a unit, as in 500m, 2 or 1Gi",
            )
        return value

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        del schema, handler
        return {
            "x-kubernetes-int-or-string": True,
            "pattern": _SHAPE,
            "maxLength": _LONGEST,
        }


KubernetesQuantity = Annotated[str, _KubernetesQuantity()]
"""A quantity of a resource."""
