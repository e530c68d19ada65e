"""The base of all models in a status.

The operator writes a status and reads it back, perhaps in an older or newer release: unknown fields
are ignored, not rejected. Much of it was reported by a driver, which runs user code, so everything
has a limit.
"""

from typing import Annotated

from pydantic import ConfigDict, StrictInt

from weir.api.bounds import Bounds
from weir.api.model import Model


class StatusModel(Model):
    """A part of a status."""

    model_config = ConfigDict(extra="ignore")


Count = Annotated[
    StrictInt, Bounds(least=0, because="nothing is counted below zero", remedy="use 0 or more")
]
"""A number of things, or a number that counts upwards."""
