"""Weir runs checkpointed, stateful dataflows on PySpark.

This module holds the public names and nothing else: what a user imports stands here, what Weir
is made of stands in the modules below, in the layers that ``pyproject.toml`` lists.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
