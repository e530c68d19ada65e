"""Generates the reference page of the resources' fields from their CRDs.

It has on one page what ``kubectl explain`` shows one field at a time, for readers without a
cluster.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from weir_operator.crd.definitions import job_definition, snapshot_definition

Schema = Mapping[str, Any]

TWIN = "executor"
"""It has the fields of ``driver``, which are listed once."""

HEAD = """\
# The fields of a job

Made from the models by `./dev test tests/test_chart.py --rewrite`; in a cluster `kubectl explain
checkpointedjob.spec` shows the same. Durations are written as in `500 ms`, `10 s` or `1 h 30 min`.
[The operator](operator.md) describes how these fields work together.
"""


def page() -> str:
    tables = (_table(definition) for definition in (job_definition(), snapshot_definition()))
    return "\n".join((HEAD, *tables))


def _table(definition: Schema) -> str:
    spec = definition["spec"]
    (version,) = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rows = (f"| `{path}` | {kind} | {text} |\n" for path, kind, text in _fields(schema))
    return f"## {spec['names']['kind']}\n\n| Field | Type | |\n| --- | --- | --- |\n{''.join(rows)}"


def _fields(schema: Schema, path: str = "") -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        place = f"{path}{name}"
        text = " ".join(field["description"].split()).replace("|", "\\|")
        needed = " Required." if name in required else ""
        if place == TWIN:
            yield place, field["type"], f"{text} Its fields are those of `driver`."
            continue
        yield place, field["type"], f"{text}{needed}"
        yield from _fields(field, f"{place}.")
        yield from _fields(field.get("items", {}), f"{place}[].")
