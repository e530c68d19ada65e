"""Plants one bug into a fresh process, without a copy of the sabotaged module anywhere.

A planted bug is a replacement of one passage in one module's source, made while the module is being
imported. The passage must occur exactly once, so a bug whose place has changed is reported instead
of silently not being planted.
"""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, ModuleType


@dataclass(frozen=True)
class Bug:
    """One sabotage, the lines of the specification it breaks, and where it goes."""

    name: str
    breaks: tuple[str, ...]
    module: str
    passage: str
    instead: str
    proofs: tuple[str, ...] = ()
    """The tests that must notice, where no schedule can: it runs the core and the slot."""
    is_scheduled: bool = False
    """A schedule must notice as well, since the simulator runs this code around the core too."""
    first_seed: int = 0
    """Where its search begins: rare orders of events are not among the first schedules."""


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the module from its sabotaged source, past every cache."""

    def __init__(self, bug: Bug, path: str) -> None:
        super().__init__(bug.module, path)
        self.bug = bug

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_source(fullname) or ""
        found = source.count(self.bug.passage)
        if found != 1:
            msg = f"{self.bug.name}: its passage occurs {found} times in {self.bug.module}"
            raise ImportError(msg)
        return compile(source.replace(self.bug.passage, self.bug.instead), self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Hands out the sabotaged module in place of the real one."""

    def __init__(self, bug: Bug) -> None:
        self.bug = bug

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.bug.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        assert spec is not None, f"{fullname} was not found"
        assert spec.origin is not None, f"{fullname} has no source"
        spec.loader = _Loader(self.bug, spec.origin)
        return spec


def plant(bug: Bug) -> None:
    """From here on this process imports the sabotaged module."""
    assert bug.module not in sys.modules, f"{bug.module} was imported before it was sabotaged"
    sys.meta_path.insert(0, _Finder(bug))
