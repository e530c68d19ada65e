"""Lays one pod over another, as people expect it of a pod template.

Mappings are merged. Lists whose elements have names are merged by them: a container is merged into
the one of its name, while a volume, a mount, a port or a variable takes the place of its namesake,
because half of one and half of another would be neither. Sources of variables are joined. Any other
list is replaced. What is above wins. Nothing is said here about who should be above whom.
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
"""Lists of which each element has a name of its own, by the field that holds it."""

MERGED = ("containers", "initContainers")
JOINED = ("envFrom",)


def laid_over(below: Tree, above: Tree) -> dict[str, object]:
    """Both together; where they disagree, what is above wins."""
    merged = dict(below)
    for field, value in above.items():
        merged[field] = _both(field, below[field], value) if field in below else value
    return merged


def _both(field: str, below: object, above: object) -> object:
    match below, above:
        case Mapping(), Mapping():
            return laid_over(below, above)
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
    """Where the element of that name stands; one without a name is its own namesake."""
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
