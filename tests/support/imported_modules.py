"""Finds what programs import from the runtime, in Python files and in the code of other files.

Code stands in Markdown, in ConfigMaps and in shell scripts too, so lines are read and not parsed.
"""

import ast
import re
from collections.abc import Iterator

from source_tree import ROOT, Module, Source

PUBLIC_MODULES = frozenset({"weir", "weir.testing"})
_IMPORT = re.compile(r"^\s*(?:from|import)\s+(weir(?:\.\w+)*)\b", re.MULTILINE)


def imports_internals(source: Source) -> Iterator[str]:
    """Imports of modules that are not public."""
    for found in _IMPORT.finditer(source.text):
        if found[1] not in PUBLIC_MODULES:
            line = source.text.count("\n", 0, found.start(1)) + 1
            yield f"{source.path}:{line}: imports {found[1]}; import public names from weir"


def imports_past_the_public_face(module: Module, names: frozenset[str]) -> Iterator[str]:
    """Imports of public names from the modules that define them."""
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("weir."):
            for alias in node.names:
                if alias.name in names and node.module not in PUBLIC_MODULES:
                    yield f"{module.path}:{node.lineno}: import {alias.name} from weir"


def stubbed_names() -> dict[str, str]:
    """The names of ``weir/__init__.pyi``, and the modules that a type checker takes them from."""
    stub = ast.parse((ROOT / "runtime/weir/__init__.pyi").read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: node.module or ""
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
