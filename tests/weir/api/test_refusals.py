"""Every configuration that the specification refuses is refused in words that help.

The table is ``refusals.txt``, so that it can be judged by people who do not read Python.
"""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from weir.api import JobConfig, load_config
from weir.api.bounds import Bounds
from weir.errors import JobRejected


def table():
    text = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8")
    for block in text.split("\n\n"):
        if not block.startswith("#"):
            promise, given, line = block.strip().split("\n")
            yield pytest.param(json.loads(given), line, id=promise)


def refusal_of(given):
    with pytest.raises(JobRejected) as rejected:
        load_config(given)
    return str(rejected.value)


def refused_fields(given):
    return [line.partition(" = ")[0] for line in refusal_of(given).splitlines() if " = " in line]


@pytest.mark.parametrize(("given", "line"), list(table()))
def test_a_refusal_names_field_value_reason_and_remedy(given, line):
    """A3 A4 A5 C2 C6 C12 C13 C15 C16 C20 R2 R3 R8 S2 S7 S11 U3 X3 X4: one row, one promise."""
    assert refusal_of(given) == line


def test_every_limit_of_every_field_is_in_the_table():
    """A limit that is not in the table has never been seen to refuse anything."""
    refused = {row.values[1].partition(" = ")[0] for row in table()}
    limited = set(limited_fields(JobConfig))

    assert {"parallelism", "checkpointing.timeout", "restart.attempts"} <= limited
    assert limited - refused == set()


def limited_fields(model, path=""):
    for field in model.model_fields.values():
        name = f"{path}{field.alias}"
        if Bounds.__name__ in repr(field):
            yield name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from limited_fields(field.annotation, f"{name}.")


def test_every_problem_has_a_line_of_its_own():
    """U3: one look shows all that must change, in the order of the fields."""
    given = {
        "parallelism": 0,
        "checkpointing": {"timeout": 0, "retained": 0, "minPuase": 1},
        "restart": {"type": "linear-delay"},
    }

    assert refused_fields(given) == [
        "parallelism",
        "checkpointing.timeout",
        "checkpointing.retained",
        "checkpointing.minPuase",
        "restart.type",
    ]


def test_every_contradiction_has_a_line_of_its_own():
    """A4, C6: settings that each clash with another are named at once."""
    given = {"checkpointing": {"maxConcurrent": 2, "minPause": "1 s", "unaligned": True}}

    assert refused_fields(given) == ["checkpointing.minPause", "checkpointing.unaligned"]


def test_a_name_that_is_not_text_is_refused_too():
    """U3: YAML allows such keys and JSON, in which the table is written, does not."""
    assert refused_fields({1: "one"}) == ["1"]


def test_a_default_that_somebody_wrote_out_changes_no_verdict():
    """K1: an API server fills in defaults before the configuration is read."""
    for given in (
        {},
        {"restart": {"type": "none"}},
        {"restart": {"type": "fixed-delay", "attempts": 3}},
        {"checkpointing": {"interval": "10 s", "storage": "file:///checkpoints"}},
    ):
        config = load_config(given)

        assert load_config(config.model_dump(mode="json")) == config
