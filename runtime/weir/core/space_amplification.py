"""Decides which merged files the next checkpoint may refer to, so that dead bytes stay bounded.

A merged file stays as long as a live checkpoint refers to one of its segments, and the dead
segments beside it cost space. Before a slot builds a checkpoint on the last one, it looks at the
files of that one: the ones with the smallest live share are left until what remains is within the
bound, and state that would refer to them is written anew (spec S6).

Each slot decides for its own references. If in every slot the files that are kept have at most so
many bytes for each live byte, then so have all of them together, and what is new is all live.
"""

from collections.abc import Collection, Iterable, Mapping

from weir.core.snapshots import StateFile


def kept_files(
    states: Iterable[Collection[StateFile]], sizes: Mapping[str, int], bound: float
) -> frozenset[str]:
    """The files that the next checkpoint may refer to, of those that hold these states.

    A state refers to all of its files or to none: leaving one file takes live bytes from others.
    Two states that were one before a rescaling may have the same segments, which count once.
    """
    kept = list(states)
    while True:
        segments = {file.segment: file for state in kept for file in state}
        live: dict[str, int] = {}
        for file in segments.values():
            live[file.path] = live.get(file.path, 0) + file.bytes
        if sum(sizes[path] for path in live) <= bound * sum(live.values()):
            return frozenset(live)
        worst = min(live, key=lambda path: (live[path] / sizes[path], path))
        kept = [state for state in kept if all(file.path != worst for file in state)]


def amplification(physical_bytes: int, logical_bytes: int) -> float:
    """Bytes of files for each byte of state."""
    return physical_bytes / logical_bytes if logical_bytes else 1.0
