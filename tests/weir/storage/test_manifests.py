"""A manifest is read as it was written, wherever it was moved to, or refused with a reason."""

import json
from dataclasses import replace

import pytest

from weir.core.checkpoint_paths import manifest_path
from weir.core.ids import ChannelId, CheckpointId, EdgeId, Epoch, Millis, OperatorId, SubtaskId
from weir.core.key_groups import HASH, HASH_VERSION
from weir.core.restore_decision import Damaged
from weir.core.snapshots import (
    CheckpointKind,
    Commit,
    CoordinatorSnapshot,
    InFlightHandle,
    KeyedHandle,
    KeyGroupRange,
    ListHandle,
    Manifest,
    NativeFile,
    NativeHandle,
    NativeState,
    Redistribution,
    Side,
    SinkLedger,
    StateFile,
    SubtaskSnapshot,
    Transaction,
    Width,
)
from weir.storage import manifests
from weir.storage.memory_store import MemoryStore

SUBTASK = SubtaskId(OperatorId("sum"), 0)
TRANSACTION = Transaction(OperatorId("sink"), CheckpointId(3), "t-3")


def a_manifest(location="memory://j1/sp"):
    edge = EdgeId("a->b")
    snapshot = SubtaskSnapshot(
        SUBTASK,
        keyed=(
            KeyedHandle(KeyGroupRange(0, 63), StateFile(f"{location}/sum-0", 900, checksum="c1")),
            KeyedHandle(KeyGroupRange(0, 63), StateFile("memory://j1/shared/1-x", 70, shared=True)),
        ),
        lists=(
            ListHandle(
                "splits",
                Redistribution.SPLIT,
                StateFile("", 2, checksum="c", content=b"\x00\xff"),
                1,
            ),
        ),
        in_flight=(
            InFlightHandle(ChannelId(edge, 0, 0), Side.INPUT, StateFile(f"{location}/deep/in", 5)),
        ),
        transactions=(TRANSACTION,),
        watermarks=((edge, Millis(17)),),
    )
    return Manifest(
        checkpoint=CheckpointId(3),
        epoch=Epoch(2),
        kind=CheckpointKind.SAVEPOINT,
        taken_at=Millis(1000),
        location=location,
        fingerprint=((("a", 128, False),), (("a->b", "a", "b", "hash"),)),
        widths=(Width(OperatorId("sum"), 1, 128),),
        snapshots=(snapshot,),
        finished=(SubtaskId(OperatorId("a"), 1),),
        coordinators=(CoordinatorSnapshot(OperatorId("a"), ("split-1", ("split-2", 7))),),
        ledgers=(SinkLedger(OperatorId("sink"), 4, CheckpointId(2), (Commit("sink", 4, ()),)),),
    )


def written(manifest):
    store = MemoryStore()
    manifests.write(store, manifest)
    return store, manifest_path(manifest.location)


def changed(**changes):
    """A manifest's file with some of its outermost fields changed and its checksum renewed."""
    sealed = json.loads(manifests.encode(a_manifest())) | changes
    del sealed["checksum"]
    return json.dumps({**sealed, "checksum": checksum_of(sealed)}).encode()


def checksum_of(sealed):
    """What a writer of these fields would have put there."""
    return manifests._checksum(sealed)  # noqa: SLF001


def test_a_manifest_is_read_as_it_was_written(place):
    """S8, C13: by its path, on every storage."""
    manifest = a_manifest(place.url("sp"))

    manifests.write(place.store, manifest)

    assert manifests.read(place.store, place.url("sp/_metadata")) == manifest


def test_a_savepoint_can_be_moved():
    """S10: its own files are found beside it, shared ones where they were."""
    store, path = written(a_manifest("memory://j1/sp"))
    store.write("memory://elsewhere/copy/_metadata", store.read(path))

    moved = manifests.read(store, "memory://elsewhere/copy/_metadata")

    assert moved == a_manifest("memory://elsewhere/copy")
    assert [file.path for file in moved.files()] == [
        "memory://elsewhere/copy/sum-0",
        "memory://j1/shared/1-x",
        "memory://elsewhere/copy/deep/in",
    ]


def test_a_person_can_read_it():
    """S8, S11: JSON with the format's version, and the hash's name and version."""
    file = json.loads(manifests.encode(a_manifest()))

    assert file["format"] == "weir manifest"
    assert file["version"] == 1
    assert file["key hash"] == {"algorithm": HASH, "version": HASH_VERSION}
    assert file["manifest"]["snapshots"][0]["keyed"][0]["file"]["path"] == "./sum-0"


def test_a_segment_keeps_its_place_and_a_whole_file_is_written_as_before():
    """S6, S8: a manifest without merged files is the one that older releases wrote."""
    manifest = a_manifest()
    snapshot = manifest.snapshots[0]
    merged = snapshot.keyed[0]._replace(file=snapshot.keyed[0].file._replace(offset=77))
    manifest = replace(manifest, snapshots=(replace(snapshot, keyed=(merged,)),))

    data = manifests.encode(manifest)

    assert json.loads(data)["manifest"]["snapshots"][0]["keyed"][0]["file"]["offset"] == 77
    assert manifests.decode(data, manifest.location) == manifest
    assert b"offset" not in manifests.encode(a_manifest())


def test_a_checkpoint_in_files_of_its_backend_is_of_the_newer_version():
    """S2, S8: an older release refuses it by its version; what it can read it still reads."""
    file = StateFile("memory://j1/shared/sst-7", 900, shared=True, checksum="c7")
    kept = StateFile("memory://j1/sp/list", 3)
    schema = StateFile("", 2, checksum="c", content=b"ab")
    handle = NativeHandle(
        KeyGroupRange(0, 63),
        "rocksdb",
        1,
        (NativeFile("000007.sst", file), NativeFile("CURRENT", kept)),
        (NativeState("total", 2, schema, next_ordinal=9),),
    )
    manifest = a_manifest()
    native = replace(manifest.snapshots[0], native=(handle,))
    manifest = replace(manifest, kind=CheckpointKind.CHECKPOINT, snapshots=(native,))

    data = manifests.encode(manifest)

    assert json.loads(data)["version"] == 2
    assert manifests.decode(data, manifest.location) == manifest
    moved = manifests.decode(data, "memory://j2/sp")
    assert [f.path for f in moved.files()][:2] == [file.path, "memory://j2/sp/list"]
    assert b"native" not in manifests.encode(a_manifest())


def test_white_space_is_not_damage():
    """S8: a person may have formatted it."""
    data = json.dumps(json.loads(manifests.encode(a_manifest())), indent=4, sort_keys=True)

    assert manifests.decode(data.encode(), "memory://j1/sp") == a_manifest()


def test_a_missing_manifest_is_damaged():
    """S8: with the reason."""
    assert manifests.read(MemoryStore(), "memory://a/_metadata") == Damaged("it was not found")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_manifest_is_damaged(share):
    """C18, S8: a partial write is refused."""
    data = manifests.encode(a_manifest())

    found = manifests.decode(data[: int(len(data) * share)], "memory://j1/sp")

    assert isinstance(found, Damaged)
    assert found.why.startswith("it is not JSON, or not all of it")


def test_no_changed_digit_goes_unnoticed():
    """S8: the checksum covers all of it."""
    data = manifests.encode(a_manifest())
    places = [at for at, byte in enumerate(data) if byte in b"0123456789"]

    for at in places:
        digit = b"1" if data[at : at + 1] != b"1" else b"2"
        damaged = data[:at] + digit + data[at + 1 :]
        assert isinstance(manifests.decode(damaged, "memory://j1/sp"), Damaged)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"[1]", "it is not a manifest of Weir"),
        (b'{"format": "other"}', "it is not a manifest of Weir"),
        (b"[" * 100_000, "it is not JSON"),
        (b"\xff\xfe\xfd", "it is not JSON"),
        (changed(version=3), "its format version is 3, and this release reads up to 2"),
        (changed(version=None), "its format version is None"),
        (changed(manifest={"$": "TimePassed"}), "expected Manifest, found TimePassed"),
        (changed(manifest={}), "Manifest needs a field 'checkpoint'"),
        (changed(**{"key hash": {"algorithm": "md5"}}), "its keys were hashed by"),
        (
            manifests.encode(a_manifest()).replace(b"split-2", b"split-3"),
            "its content is not what its checksum says",
        ),
    ],
)
def test_what_cannot_be_believed_is_damaged_for_a_reason(data, why):
    """S8, S11: refused, and said why."""
    found = manifests.decode(data, "memory://j1/sp")

    assert isinstance(found, Damaged)
    assert why in found.why


def test_a_manifest_without_a_checkpoint_is_damaged():
    """S8: everything is there, or nothing is believed."""
    sealed = json.loads(manifests.encode(a_manifest()))
    del sealed["manifest"], sealed["checksum"]
    sealed["checksum"] = checksum_of(sealed)

    assert manifests.decode(json.dumps(sealed).encode(), "a") == Damaged("it holds no checkpoint")


def test_a_manifest_of_an_older_release_is_read():
    """S8: fields that have come since have their defaults."""
    sealed = json.loads(manifests.encode(a_manifest()))
    for handle in sealed["manifest"]["snapshots"][0]["keyed"]:
        del handle["file"]["checksum"], handle["file"]["content"]

    found = manifests.decode(changed(manifest=sealed["manifest"]), "memory://j1/sp")

    snapshot = a_manifest().snapshots[0]
    older = tuple(h._replace(file=h.file._replace(checksum="")) for h in snapshot.keyed)
    assert found == replace(a_manifest(), snapshots=(replace(snapshot, keyed=older),))
