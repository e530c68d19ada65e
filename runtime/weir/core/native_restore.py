"""Decides how the native instances of old subtasks become the one instance of a new subtask.

One of them is opened and grows into the new state: its files stay what they are, so the next
checkpoint refers to them instead of uploading them again. Key groups that belong to other subtasks
are deleted from it. What the others have of this subtask's key groups is copied into it, entry by
entry, so the one that has the most of them is opened (spec S2, S11).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from weir.core.rescale import NativeShare
from weir.core.snapshots import KeyGroupRange


@dataclass(frozen=True, slots=True)
class NativeRestore:
    """What to do, in this order."""

    opened: NativeShare
    clipped: tuple[KeyGroupRange, ...]
    """The key groups of the opened instance that belong to other subtasks."""
    copied: tuple[NativeShare, ...]


def plan_native_restore(shares: Sequence[NativeShare]) -> NativeRestore | None:
    """None if no share is native. Of equals the first is opened, so a repetition decides alike."""
    if not shares:
        return None
    opened = max(range(len(shares)), key=lambda at: (_estimated_bytes(shares[at]), -at))
    return NativeRestore(
        shares[opened],
        outside(shares[opened]),
        tuple(share for at, share in enumerate(shares) if at != opened),
    )


def outside(share: NativeShare) -> tuple[KeyGroupRange, ...]:
    """The key groups of the instance that the share leaves out."""
    first, last = share.handle.groups
    below = KeyGroupRange(first, share.groups.first - 1)
    above = KeyGroupRange(share.groups.last + 1, last)
    return tuple(groups for groups in (below, above) if groups.first <= groups.last)


def _estimated_bytes(share: NativeShare) -> int:
    """As if the bytes of the instance were spread evenly over its key groups."""
    all_groups = _size(share.handle.groups)
    return share.handle.bytes * _size(share.groups) // all_groups


def _size(groups: KeyGroupRange) -> int:
    return groups.last - groups.first + 1
