"""K1: a model that Kubernetes could not read is refused here, with its path."""

from typing import Annotated

import pytest
from pydantic import BaseModel, ConfigDict, Field

from weir_operator.crd.structural_schema import UntranslatableSchema, structural_schema


class Dependent(BaseModel):
    """A part."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    size: int = 3
    """How large
    it is."""

    name: str | None = None
    """What it is called."""


class Whole(BaseModel):
    """A whole."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    part: Dependent = Field(default_factory=Dependent)
    """Its part."""

    spare: Dependent | None = None
    """Another part."""

    first: Dependent
    """A part that must be there."""


SCHEMA = structural_schema(Whole)


def test_references_are_written_out_under_the_description_of_the_field():
    assert SCHEMA["properties"]["part"]["description"] == "Its part."
    assert SCHEMA["properties"]["part"]["properties"]["size"]["type"] == "integer"


def test_what_may_be_none_is_a_field_that_may_be_absent():
    name = SCHEMA["properties"]["part"]["properties"]["name"]

    assert name == {"description": "What it is called.", "type": "string", "maxLength": 2048}


def test_an_object_with_defaults_is_filled_in():
    fields = SCHEMA["properties"]

    assert fields["part"]["default"] == {"size": 3}
    assert "default" not in fields["spare"]
    assert "default" not in fields["first"]


def test_a_description_is_one_paragraph_that_ends_with_the_default():
    size = SCHEMA["properties"]["part"]["properties"]["size"]

    assert size["description"] == "How large it is. Default: 3."


def a_model(annotation, **config):
    return type(
        "Thing",
        (BaseModel,),
        {
            "__annotations__": {"field": annotation},
            "__module__": __name__,
            "field": Field(description="A field."),
            "model_config": ConfigDict(**config),
        },
    )


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (int | str, "Thing.field: the only union is that with None"),
        (tuple[int, ...], r"Thing.field: has no limit to its elements"),
        (dict[str, int], r"Thing.field: has no limit to its entries"),
        (Annotated[int, Field(gt=0)], "Thing.field: Kubernetes does not know exclusiveMinimum"),
    ],
)
def test_what_kubernetes_cannot_say_is_refused(annotation, message):
    with pytest.raises(UntranslatableSchema, match=message):
        structural_schema(a_model(annotation))


def test_a_field_without_a_description_is_refused():
    class Silent(BaseModel):
        field: int

    with pytest.raises(UntranslatableSchema, match=r"Silent\.field: has no description"):
        structural_schema(Silent)
