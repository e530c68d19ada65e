"""What every part of a status has in common.

A status is written by us and read back by us, perhaps by an older or newer release: fields that a
release does not know are ignored, not refused. Much of it was told by a driver, which runs other
people's code, so everything has a limit.
"""

from typing import Annotated

from pydantic import ConfigDict, StrictInt

from weir.api.bounds import Bounds
from weir.api.model import Model


class Reported(Model):
    """A part of a status."""

    model_config = ConfigDict(extra="ignore")


Count = Annotated[
    StrictInt, Bounds(least=0, because="nothing is counted below zero", remedy="use 0 or more")
]
"""A number of things, or a number that counts upwards."""
