"""Finds fields of a manifest that Kubernetes does not know, by the models of its API.

An API server drops an unknown field with a warning, so a misspelt one would silently have no
effect.
"""

import re
from collections.abc import Iterator

from kubernetes_asyncio.client import models


def unknown_fields(manifest: object, model: str, path: str = "") -> Iterator[str]:
    """Yield the path of every field that the model, or one inside it, does not have."""
    if (inner := re.fullmatch(r"list\[(.*)\]", model)) and isinstance(manifest, list):
        for index, element in enumerate(manifest):
            yield from unknown_fields(element, inner[1], f"{path}[{index}]")
    elif isinstance(manifest, dict) and (kind := getattr(models, model, None)) is not None:
        names = {outside: inside for inside, outside in kind.attribute_map.items()}
        for field, value in manifest.items():
            if field not in names:
                yield f"{path}.{field}"
            else:
                yield from unknown_fields(
                    value, kind.openapi_types[names[field]], f"{path}.{field}"
                )
