"""Reads amounts with a unit, "10 s" or "20 KiB", into whole numbers of the smallest unit.

People write units and machines count, so a quantity is text in YAML and an ``int`` everywhere else.
Reading and writing are inverse: what is written canonically is read back as the same number.
A bare number counts the smallest unit. Fractions are refused, because they would need rounding:
"1.5 s" is written "1500 ms". This module does not know what the amounts are for.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from weir.api.config_problem import InvalidValue

LONGEST_TEXT = 64

_ONE = r"[0-9]{1,18}\s*[A-Za-z]+"
_AMOUNTS = rf"([0-9]{{1,18}}|{_ONE}(\s*{_ONE})*)"
_SHAPE = re.compile(_AMOUNTS)
_PARTS = re.compile(r"([0-9]+)\s*([A-Za-z]+)")


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """A kind of amount; as ``Annotated[int, Quantity(…)]`` a pydantic type of it."""

    noun: str
    units: Mapping[str, int]
    """The units as they are written, smallest first, each in terms of the first."""
    synonyms: Mapping[str, str]
    """Other spellings, in lower case, of those units."""
    most: int
    example: str

    def parse(self, value: object) -> int:
        """Read what a person wrote; refuse what is not clear."""
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise InvalidValue(f"this is not a {self.noun}", self._how_to_write())
        amount = value if isinstance(value, int) else self._read(value)
        if amount < 0:
            raise self._negative()
        if amount > self.most:
            limit = self.format(self.most)
            raise InvalidValue(f"no {self.noun} is above {limit}", f"use at most {limit}")
        return amount

    def format(self, amount: int) -> str:
        """Write in the largest unit that needs no fraction."""
        fitting = [unit for unit, factor in self.units.items() if amount % factor == 0]
        unit = fitting[-1] if amount else fitting[0]
        return f"{amount // self.units[unit]} {unit}"

    def _read(self, text: str) -> int:
        bare = text.strip()
        if bare.startswith("-") and _SHAPE.fullmatch(bare[1:].lstrip()):
            raise self._negative()
        if len(text) > LONGEST_TEXT or not _SHAPE.fullmatch(bare):
            raise InvalidValue(f"this is not a {self.noun}", self._how_to_write())
        if bare.isdecimal():
            return int(bare)
        return sum(int(count) * self._factor(unit) for count, unit in _PARTS.findall(bare))

    def _factor(self, spelling: str) -> int:
        named = {unit.lower(): unit for unit in self.units} | dict(self.synonyms)
        unit = named.get(spelling.lower())
        if unit is None:
            raise InvalidValue(f'"{spelling}" is no unit of {self.noun}', self._how_to_write())
        return self.units[unit]

    def _how_to_write(self) -> str:
        return f'write a whole number and a unit ({", ".join(self.units)}), as in "{self.example}"'

    def _negative(self) -> InvalidValue:
        return InvalidValue(f"a {self.noun} is never negative", "leave out the minus sign")

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Read on the way in, write on the way out."""
        return core_schema.no_info_before_validator_function(
            self.parse,
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(self.format),
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the text alone: a schema for Kubernetes has one type per field."""
        del schema, handler
        return {
            "type": "string",
            "pattern": rf"^\s*{_AMOUNTS}\s*$",
            "maxLength": LONGEST_TEXT,
        }
