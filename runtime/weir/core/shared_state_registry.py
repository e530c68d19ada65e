"""Counts the references to each shared state file, so that none is deleted too early or never.

Incremental checkpoints share files. A file may go when no retained checkpoint, no pending one and
no base that a pending one may still build on refers to it. The registry is a value: taking and
releasing return a new one, and it is rebuilt from manifests when a driver starts (spec S4).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SharedStateRegistry:
    """References per path; a path without references is absent."""

    references: Mapping[str, int] = field(default_factory=dict)

    def __contains__(self, path: str) -> bool:
        return path in self.references

    def take(self, paths: Iterable[str]) -> "SharedStateRegistry":
        references = dict(self.references)
        for path in paths:
            references[path] = references.get(path, 0) + 1
        return SharedStateRegistry(references)

    def release(self, paths: Iterable[str]) -> tuple["SharedStateRegistry", tuple[str, ...]]:
        """The registry afterwards, and the paths without references."""
        references = dict(self.references)
        freed: list[str] = []
        for path in paths:
            assert references.get(path, 0) > 0, f"{path} was released more often than taken"
            references[path] -= 1
            if not references[path]:
                del references[path]
                freed.append(path)
        return SharedStateRegistry(references), tuple(freed)
