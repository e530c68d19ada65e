"""Reads what a subtask inherits: keyed state by key group, list items, in-flight rows.

It follows the state assignment literally and reads through the same store, so a file that is
missing or damaged shows here, and so does a key group or an item that two subtasks were given.
"""

from simulation.operators import GROUPS, Operator
from simulation.store import Damage, Store
from simulation.uploads import Uploads
from weir.core.ids import CheckpointId, EdgeId, Epoch
from weir.core.rescale import InFlightShare, StateAssignment
from weir.core.snapshots import StateFile


class Unreadable(Exception):
    """The files went, because another driver has taken the job over."""


def load(
    operator: Operator, uploads: Uploads, state_assignment: StateAssignment, restored: CheckpointId
) -> dict[EdgeId, list[object]]:
    """Fill the operator with its state and return its in-flight batches by edge."""
    store = uploads.store
    for handle in state_assignment.keyed:
        content = read(store, uploads.epoch, handle.file.path)
        assert isinstance(content, dict)
        for key, state in content.items():
            if GROUPS[key] in handle.groups:
                operator.restore_keyed(key, state)
    lists: dict[str, list[object]] = {}
    for share in state_assignment.lists:
        items = read(store, uploads.epoch, share.handle.file.path)
        assert isinstance(items, tuple)
        lists.setdefault(share.handle.name, []).extend(items[share.first : share.stop])
    for name in sorted(lists):
        operator.restore_list(name, lists[name])
    operator.restore_watermarks(dict(state_assignment.watermarks))
    _remember_files(uploads, state_assignment, restored)
    batches: dict[EdgeId, list[object]] = {}
    for caught in state_assignment.in_flight:
        batches.setdefault(caught.handle.channel.edge, []).extend(_rows(uploads, caught))
    return batches


def _remember_files(
    uploads: Uploads, state_assignment: StateAssignment, restored: CheckpointId
) -> None:
    """What was inherited whole may be the base of the next increment."""
    pieces: dict[int, StateFile] = {}
    for handle in state_assignment.keyed:
        if handle.file.shared:
            pieces[handle.groups.first] = handle.file
            uploads.contents[handle.file.path] = uploads.store.files[handle.file.path]
    if pieces:
        uploads.increments.restored(restored, pieces)


def _rows(uploads: Uploads, share: InFlightShare) -> list[object]:
    batches = read(uploads.store, uploads.epoch, share.handle.file.path)
    assert isinstance(batches, tuple)
    kept: list[object] = []
    for batch in batches:
        rows = tuple(row for row in batch if share.groups is None or GROUPS[row[3]] in share.groups)
        if rows:
            kept.append(rows)
    return kept


def read(store: Store, epoch: Epoch, path: str) -> object:
    found = store.files.get(path)
    if found is None or isinstance(found, Damage):
        if epoch < store.epoch():
            raise Unreadable(path)
        state = "missing" if found is None else "damaged"
        store.world.violated(f"{path} is needed for a restore and is {state}")
    return found
