"""Finds the files of this project as its tests read them: the sources, not what tools leave behind.

Tests about the source must also hold in an unpacked archive or a container's copy, so the tree is
walked and git is not asked.
"""

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("runtime/weir", "operator/weir_operator")
PYTHON_FOLDERS = ("runtime", "operator", "tests", "e2e", "bench")
GENERATED_FOLDERS = frozenset({"__pycache__", "build", "dist", "venv", "node_modules"})


@dataclass(frozen=True)
class Source:
    """One text file, by its path below the root."""

    path: PurePosixPath
    text: str

    def is_in(self, *folders: str) -> bool:
        return any(self.path.is_relative_to(folder) for folder in folders)


@dataclass(frozen=True)
class Module(Source):
    """One Python file, parsed."""

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))


def text_files() -> Iterator[Source]:
    """Every text file that the project keeps, in a stable order."""
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = sorted(name for name in subfolders if _is_kept(name))
        for name in sorted(names):
            path = Path(folder, name)
            if name == ".git":  # in a linked work tree it is a file
                continue
            content = path.read_bytes()
            if b"\0" not in content:
                yield Source(PurePosixPath(path.relative_to(ROOT)), content.decode())


def modules(*folders: str) -> Iterator[Module]:
    for source in text_files():
        if source.path.suffix == ".py" and source.is_in(*folders):
            yield Module(source.path, source.text)


def _is_kept(folder: str) -> bool:
    if folder in GENERATED_FOLDERS or folder.endswith(".egg-info"):
        return False
    return not folder.startswith(".") or folder == ".ci"
