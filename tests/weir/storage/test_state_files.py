"""State comes back as it was put away, or not at all."""

import pyarrow as pa
import pytest

from weir.core.snapshots import StateFile
from weir.storage.state_files import (
    INLINE_BYTES,
    PART_BYTES,
    DamagedState,
    described,
    fetch,
    fetch_to_disk,
    put,
    read_start,
    small,
)

STATE = bytes(range(256)) * 200


def by_disk(store, file):
    return fetch_to_disk(store, file, "")


both_ways = pytest.mark.parametrize("read", [fetch, by_disk])


@both_ways
@pytest.mark.parametrize("kind", [bytes, memoryview, pa.py_buffer])
def test_state_is_fetched_as_it_was_put(place, kind, read):
    """S7, C18: with a checksum in its handle."""
    file = put(place.store, place.url("chk-1/sum-0"), kind(STATE), shared=True)

    assert file == StateFile(place.url("chk-1/sum-0"), len(STATE), True, file.checksum)  # noqa: FBT003
    assert len(file.checksum) == 16
    assert read(place.store, file) == pa.py_buffer(STATE)


def test_small_state_travels_in_its_handle(in_memory):
    """S7: small state is inline in the manifest."""
    file = small(pa.py_buffer(bytes(INLINE_BYTES)))

    assert file is not None
    assert (file.path, file.bytes) == ("", INLINE_BYTES)
    assert fetch(in_memory.store, file) == pa.py_buffer(bytes(INLINE_BYTES))
    assert in_memory.store.list("memory:/") == ()


def test_larger_state_does_not():
    """S7: at most 20 KiB, or what was configured."""
    assert small(bytes(INLINE_BYTES + 1)) is None
    assert small(b"abc", threshold=2) is None


def test_the_handle_of_nothing_is_inline(in_memory):
    file = small(b"")

    assert file is not None
    assert fetch(in_memory.store, file) == pa.py_buffer(b"")


@both_ways
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (STATE[:-1], "it has 51199 bytes, and 51200 were written"),
        (STATE[:-1] + b"?", "its bytes are not those that were written"),
    ],
)
def test_a_changed_file_is_refused_by_name(place, content, why, read):
    """C18: verified on restore."""
    file = put(place.store, place.url("sum-0"), STATE)
    place.store.write(file.path, content)

    with pytest.raises(
        DamagedState, match=f"sum-0 cannot be restored from: {why}. Remedy: bring the file"
    ):
        read(place.store, file)


@both_ways
def test_a_lost_file_is_refused_by_name(place, read):
    """C18: and the remedy is said."""
    file = put(place.store, place.url("sum-0"), STATE)
    place.store.delete([file.path])

    with pytest.raises(DamagedState, match=r"sum-0 .* it does not exist. .* older checkpoint"):
        read(place.store, file)


def test_changed_inline_state_is_refused():
    """C18: a checksum for each piece, wherever it is."""
    file = small(b"abc")

    with pytest.raises(DamagedState, match="inline state cannot be restored from"):
        fetch(None, file._replace(content=b"abd"))


@both_ways
def test_a_file_of_a_release_without_checksums_is_judged_by_its_length(place, read):
    """S8: still readable."""
    file = put(place.store, place.url("a"), STATE)._replace(checksum="")

    assert read(place.store, file).size == len(STATE)


@both_ways
def test_a_segment_is_read_from_the_file_it_shares(place, read):
    """S6: only its own bytes are read, and they are verified."""
    first, second = b"first " * 9000, b"second" * 9000
    place.store.write(place.url("merged"), first + second)
    path = place.url("merged")

    head = described(path, first)
    tail = described(path, second)._replace(offset=len(first))

    assert read(place.store, head) == pa.py_buffer(first)
    assert read(place.store, tail) == pa.py_buffer(second)
    assert read_start(place.store, tail, 6) == b"second"
    assert read_start(place.store, tail._replace(bytes=3), 6) == b"sec"


@both_ways
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (STATE + STATE[:-1], "it has 51199 bytes, and 51200 were written"),
        (STATE[:7], "it has 0 bytes, and 51200 were written"),
        (STATE + b"?" * len(STATE), "its bytes are not those that were written"),
    ],
)
def test_a_damaged_segment_is_refused(place, content, why, read):
    """S6, C18: a file that was cut short, or whose other part is whole, gives no wrong state."""
    place.store.write(place.url("merged"), content)
    file = described(place.url("merged"), STATE)._replace(offset=len(STATE))

    with pytest.raises(DamagedState, match=f"merged cannot be restored from: {why}"):
        read(place.store, file)


def test_a_large_file_leaves_nothing_on_the_disk(in_memory, tmp_path):
    """S2 R7: it is read part by part to a directory that need not exist, and unlinked there."""
    content = bytes(PART_BYTES) + STATE
    file = put(in_memory.store, in_memory.url("sum-0"), content)

    fetched = fetch_to_disk(in_memory.store, file, f"{tmp_path}/local/disk")

    assert fetched == pa.py_buffer(content)
    assert list((tmp_path / "local" / "disk").iterdir()) == []


class ObservedStore:
    """Storage that looks at a directory whenever it is read."""

    def __init__(self, store, directory):
        self._store, self._directory = store, directory
        self.seen = []

    def read_range(self, path, start, stop):
        self.seen.append(list(self._directory.iterdir()))
        return self._store.read_range(path, start, stop)


def test_a_restore_that_is_killed_leaves_nothing_on_the_disk(in_memory, tmp_path):
    """S2 R7: its file has no name from the beginning, so the disk is free when the process ends."""
    content = bytes(PART_BYTES) + STATE
    file = put(in_memory.store, in_memory.url("sum-0"), content)
    store = ObservedStore(in_memory.store, tmp_path)

    assert fetch_to_disk(store, file, str(tmp_path)) == pa.py_buffer(content)
    assert store.seen == [[], []]
