"""Names the extra that an import needs, before the import fails on a library's own name.

A plain ``pip install`` brings what needs no Spark: the client of a running job and the tools that
read checkpoint storage. Jobs need the extra ``spark``, the operator needs ``operator``.
"""

from importlib.util import find_spec

from weir.errors import WeirError


class MissingExtra(WeirError, ImportError):
    """A part of Weir was imported whose libraries are not installed."""


def require_extra(extra: str, part: str, *modules: str) -> None:
    """Refuse ``part`` unless all modules that the extra brings can be found."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise MissingExtra(
            f"{part} cannot be imported",
            f"it needs {' and '.join(missing)}, which a plain installation does not bring",
            f"pip install 'sparkweir[{extra}]' (in a clone of the project: pip install "
            f"'.[{extra}]')",
        )
