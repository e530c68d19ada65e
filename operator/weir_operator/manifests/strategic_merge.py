"""Merges one pod over another, like a strategic merge patch.

Mappings are merged. Lists whose elements have names are merged by name: a container is merged into
the one of the same name, while a volume, a mount, a port or a variable replaces its namesake,
because a mixture of two would be invalid. ``envFrom`` lists are concatenated. Any other list is
replaced. The overlay wins. This module does not decide which pod is the overlay.
"""

from collections.abc import Mapping

Tree = Mapping[str, object]

NAMED_BY = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "env": "name",
    "ports": "containerPort",
}
"""Lists whose elements are identified by a field, with that field."""

MERGED = ("containers", "initContainers")
JOINED = ("envFrom",)


def strategic_merge(below: Tree, above: Tree) -> dict[str, object]:
    """Both together; where they differ, the overlay wins."""
    merged = dict(below)
    for field, value in above.items():
        merged[field] = _both(field, below[field], value) if field in below else value
    return merged


def _both(field: str, below: object, above: object) -> object:
    match below, above:
        case Mapping(), Mapping():
            return strategic_merge(below, above)
        case list(), list() if field in JOINED:
            return _joined(below, above)
        case list(), list() if field in NAMED_BY:
            return _by_name(field, below, above)
        case _:
            return above


def _joined(below: list[object], above: list[object]) -> list[object]:
    return [*below, *(element for element in above if element not in below)]


def _by_name(field: str, below: list[object], above: list[object]) -> list[object]:
    merged = list(below)
    for element in above:
        at = _namesake(NAMED_BY[field], element, merged)
        if at is None:
            merged.append(element)
        else:
            merged[at] = _both("", merged[at], element) if field in MERGED else element
    return merged


def _namesake(key: str, element: object, among: list[object]) -> int | None:
    """The index of the element of that name; an element without a name matches its equal."""
    if not isinstance(element, Mapping) or key not in element:
        return among.index(element) if element in among else None
    return next(
        (
            at
            for at, other in enumerate(among)
            if isinstance(other, Mapping) and other.get(key) == element[key]
        ),
        None,
    )
