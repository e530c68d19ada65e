"""Writes a checkpoint's manifest as readable JSON, and refuses a damaged one.

Files beside the manifest are named relative to it (``./name``), so a savepoint's directory can be
moved or copied and is found whole where it is now (spec S10). The checksum covers everything else
in the file, in a form that does not depend on white space (spec S8).

A later release that changes the format raises ``VERSION`` and still reads the older ones. A
checkpoint that needs nothing of the newer version is written in the older one, so that an older
release can still restore it.
"""

import json
from collections.abc import Callable
from dataclasses import replace

import xxhash

from weir.core.checkpoint_paths import manifest_path
from weir.core.key_groups import HASH, HASH_VERSION
from weir.core.restore_decision import Damaged
from weir.core.snapshots import Manifest, StateFile, SubtaskSnapshot
from weir.storage.object_store import NotFound, ObjectStore
from weir.wire.json_codec import Undecodable, from_json, to_json

FORMAT = "weir manifest"
VERSION = 2
"""1: state in open files. 2: state in the files of a backend's own format as well."""
HERE = "./"

_NAME = manifest_path("")
_KEY_HASH = {"algorithm": HASH, "version": HASH_VERSION}


def write(store: ObjectStore, manifest: Manifest) -> None:
    """Durable when it returns."""
    store.write(manifest_path(manifest.location), encode(manifest))


def read(store: ObjectStore, path: str) -> Manifest | Damaged:
    try:
        data = store.read(path)
    except NotFound:
        return Damaged("it was not found")
    return decode(data, path.removesuffix(_NAME))


def encode(manifest: Manifest) -> bytes:
    inside = f"{manifest.location}/"

    def shorten(path: str) -> str:
        return f"{HERE}{path.removeprefix(inside)}" if path.startswith(inside) else path

    body = to_json(_with_paths(manifest, shorten))
    version = VERSION if any(snapshot.native for snapshot in manifest.snapshots) else 1
    sealed = {"format": FORMAT, "version": version, "key hash": _KEY_HASH, "manifest": body}
    return json.dumps({"checksum": _checksum(sealed), **sealed}, indent=1).encode()


def decode(data: bytes, location: str) -> Manifest | Damaged:
    """The manifest as it was found at this location, whatever place it was written for."""

    def lengthen(path: str) -> str:
        return f"{location}/{path.removeprefix(HERE)}" if path.startswith(HERE) else path

    try:
        sealed = json.loads(data)
    except (ValueError, RecursionError) as problem:
        return Damaged(f"it is not JSON, or not all of it: {problem}")
    why = _why_not(sealed)
    if why:
        return Damaged(why)
    try:
        manifest = from_json(sealed["manifest"], Manifest)
    except Undecodable as problem:
        return Damaged(f"it does not describe a checkpoint: {problem}")
    return replace(_with_paths(manifest, lengthen), location=location)


def _why_not(sealed: object) -> str:
    """Why the manifest is invalid; empty if it is valid."""
    if not isinstance(sealed, dict) or sealed.get("format") != FORMAT:
        return "it is not a manifest of Weir"
    version = sealed.get("version")
    if not isinstance(version, int) or version > VERSION:
        return f"its format version is {version}, and this release reads up to {VERSION}"
    checksum = sealed.pop("checksum", "")
    if checksum != _checksum(sealed):
        return "its content is not what its checksum says"
    if sealed.get("key hash") != _KEY_HASH:
        return f"its keys were hashed by {sealed.get('key hash')}, and this release has {_KEY_HASH}"
    return "" if "manifest" in sealed else "it holds no checkpoint"


def _checksum(sealed: dict[str, object]) -> str:
    canonical = json.dumps(sealed, sort_keys=True, separators=(",", ":"))
    return f"xxh3_128:{xxhash.xxh3_128_hexdigest(canonical.encode())}"


def _with_paths(manifest: Manifest, change: Callable[[str], str]) -> Manifest:
    def changed(file: StateFile) -> StateFile:
        return file._replace(path=change(file.path))

    def moved(snapshot: SubtaskSnapshot) -> SubtaskSnapshot:
        return replace(
            snapshot,
            native=tuple(
                h._replace(files=tuple(f._replace(file=changed(f.file)) for f in h.files))
                for h in snapshot.native
            ),
            keyed=tuple(h._replace(file=changed(h.file)) for h in snapshot.keyed),
            lists=tuple(h._replace(file=changed(h.file)) for h in snapshot.lists),
            in_flight=tuple(h._replace(file=changed(h.file)) for h in snapshot.in_flight),
        )

    return replace(manifest, snapshots=tuple(moved(s) for s in manifest.snapshots))
