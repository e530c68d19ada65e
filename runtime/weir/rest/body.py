"""Base class of the API's bodies, and the body of a refusal."""

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """A value that is sent as JSON. A reader ignores the additional fields of a newer server."""

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
