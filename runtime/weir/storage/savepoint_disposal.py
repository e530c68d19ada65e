"""Deletes a savepoint that its owner does not want any more, with no job running (spec K5).

Only files that the manifest names are deleted, and only in the savepoint's directory. The manifest
is renamed first, so that a half-deleted directory is not a savepoint any more and a repeated call
after a crash still knows its files. Deleting a savepoint that is gone succeeds.

A checkpoint belongs to its job and may share files with other checkpoints, so it is refused, as is
any other content of the directory.
"""

from weir.core.checkpoint_paths import manifest_path
from weir.core.restore_decision import Damaged
from weir.core.snapshots import Manifest
from weir.errors import JobRejected
from weir.storage import manifests
from weir.storage.object_store import NotFound, ObjectStore

MARK = "/_disposed"
"""Beside the files of a savepoint that is being deleted: its manifest under another name."""

MANIFEST = manifest_path("")


def dispose(store: ObjectStore, path: str) -> bool:
    """Delete the savepoint that is named by its directory or by its manifest.

    Returns whether there was one; a deleted savepoint and one that never existed look the same.
    """
    directory = path.rstrip("/").removesuffix(MANIFEST)
    mark, manifest = f"{directory}{MARK}", f"{directory}{MANIFEST}"
    content = _found(store, mark) or _found(store, manifest)
    if content is None:
        if any(_is_inside(url, directory) for url in store.list(directory)):
            raise _refusal(directory, "it holds files and no manifest")
        return False
    named = dict.fromkeys(file.path for file in _savepoint(content, directory).files())
    store.write(mark, content)
    store.delete((manifest, *(url for url in named if _is_inside(url, directory)), mark))
    return True


def _found(store: ObjectStore, url: str) -> bytes | None:
    try:
        return store.read(url)
    except NotFound:
        return None


def _savepoint(content: bytes, directory: str) -> Manifest:
    found = manifests.decode(content, directory)
    if isinstance(found, Damaged):
        raise _refusal(directory, f"its manifest cannot be read: {found.why}")
    if not found.kind.is_savepoint:
        raise _refusal(directory, f"it is a {found.kind}, and only its job knows who needs it")
    return found


def _refusal(directory: str, why: str) -> JobRejected:
    return JobRejected(
        f"{directory} is not deleted, because it is no savepoint",
        why,
        "name the directory of a savepoint; delete anything else by hand",
    )


def _is_inside(url: str, directory: str) -> bool:
    """A manifest is a file that others can write: it cannot lead out of its own directory.

    Where directories are objects too, an empty one is listed as itself.
    """
    inside = f"{directory}/"
    return url.startswith(inside) and ".." not in url.removeprefix(inside).split("/")
