"""What every body of the API has in common, and the body of every refusal."""

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """A value that travels as JSON. A reader ignores what a newer server says beyond it."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
    )


class Problem(Body):
    """A refusal: the problem, its cause and the remedy."""

    title: str
    """What is wrong."""
    status: int
    """The code of the answer."""
    cause: str
    """Why it is wrong."""
    remedy: str
    """What to do about it."""
