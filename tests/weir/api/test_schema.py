"""The models can be embedded in a Kubernetes resource as they are."""

import re

from weir.api import JobConfig
from weir.api.duration import parse_duration

SCHEMA = JobConfig.model_json_schema()
MODELS = [SCHEMA, *(part for part in SCHEMA["$defs"].values() if part["type"] == "object")]
FIELDS = [(name, field) for model in MODELS for name, field in model["properties"].items()]


def alternatives(field):
    return [option.get("type") for option in field.get("anyOf", [])]


def test_every_field_is_described():
    """K1: ``kubectl explain`` shows what the docstring says, and no field keeps silent."""
    described = {name for name, field in FIELDS if field.get("description")}
    described |= {name for name, field in FIELDS if SCHEMA["$defs"].get(reference(field))}

    assert {name for name, _ in FIELDS} - described == set()


def reference(field):
    return field.get("$ref", "").removeprefix("#/$defs/")


def test_the_only_union_is_with_nothing():
    """K1: a structural schema has one type per field, which may be nullable."""
    assert {len(alternatives(field)) for _, field in FIELDS} == {0, 2}
    assert all(alternatives(field)[1] == "null" for _, field in FIELDS if "anyOf" in field)
    assert not re.search(r"oneOf|allOf", str(SCHEMA))


def test_no_model_contains_itself():
    """K1: a structural schema is inlined, so it must end."""
    for name in SCHEMA["$defs"]:
        assert name not in inside(name)


def inside(name):
    """The models that one contains, however deep; endless if one contains itself."""
    fields = SCHEMA["$defs"][name].get("properties", {}).values()
    parts = {reference(field) for field in fields if "$ref" in field}
    return parts.union(*(inside(part) for part in parts))


def test_no_model_accepts_unknown_fields():
    """K1: a misspelt field is an error in the API server too."""
    assert [model["additionalProperties"] for model in MODELS] == [False] * len(MODELS)


def test_a_default_has_the_type_of_its_field():
    """K1: an API server that fills in a default must not break its own schema."""
    timeout = SCHEMA["$defs"]["CheckpointingConfig"]["properties"]["timeout"]

    assert timeout["type"] == "string"
    assert timeout["default"] == "10 min"
    assert re.search(timeout["pattern"], timeout["default"])


def test_the_pattern_of_a_duration_accepts_what_is_read():
    """K1: the API server and the driver agree on how a duration looks."""
    pattern = SCHEMA["$defs"]["CheckpointingConfig"]["properties"]["interval"]["pattern"]

    for written in ("10 s", "500ms", "1h30m", " 1 min ", "250"):
        assert parse_duration(written) > 0
        assert re.search(pattern, written)
    for written in ("1.5 s", "-1 s", "soon", ""):
        assert not re.search(pattern, written)


def test_limits_reach_the_schema():
    """S11: Kubernetes refuses a parallelism out of bounds by itself."""
    parallelism = SCHEMA["properties"]["parallelism"]

    assert (parallelism["minimum"], parallelism["maximum"]) == (1, 32_768)


def test_the_schema_holds_no_limit_that_kubernetes_could_not_read():
    """K1: text has no minimum, and a limit is a number."""
    checkpointing = SCHEMA["$defs"]["CheckpointingConfig"]["properties"]

    assert "minimum" not in checkpointing["timeout"]
    assert "maximum" not in checkpointing["retained"]
