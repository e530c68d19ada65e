"""Every store keeps the same promises."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from weir.errors import JobRejected
from weir.storage.stores import NotFound, as_url, store_for


@pytest.mark.parametrize("data", [b"bytes", memoryview(b"a view"), pa.py_buffer(b"arrow"), b""])
def test_what_was_written_is_read(place, data):
    """S7: the state comes back byte by byte."""
    place.store.write(place.url("chk-1/state"), data)

    assert place.store.read(place.url("chk-1/state")) == bytes(memoryview(data))
    assert place.store.size(place.url("chk-1/state")) == len(memoryview(data))


@pytest.mark.parametrize(
    ("start", "stop", "part"), [(0, 2, b"by"), (2, 5, b"tes"), (3, 99, b"es"), (7, 9, b"")]
)
def test_a_part_of_an_object_can_be_read_alone(place, start, stop, part):
    """R10, S12: so that a reader need not hold a whole file in memory."""
    place.store.write(place.url("in/rows"), b"bytes")

    assert place.store.read_range(place.url("in/rows"), start, stop) == part
    with pytest.raises(NotFound):
        place.store.read_range(place.url("nothing"), start, stop)


@pytest.mark.parametrize("content", [b"bytes", b""])
def test_an_object_can_be_copied(place, content):
    """R5, R7: and replaces what was there, as a write does."""
    place.store.write(place.url("from"), content)
    place.store.write(place.url("to"), b"older")

    place.store.copy(place.url("from"), place.url("to"))

    assert place.store.read(place.url("to")) == content
    with pytest.raises(NotFound):
        place.store.copy(place.url("nothing"), place.url("to"))


def test_writing_again_replaces(place):
    """C8: a manifest that is written twice is one manifest."""
    place.store.write(place.url("a"), b"old and longer")
    place.store.write(place.url("a"), b"new")

    assert place.store.read(place.url("a")) == b"new"


def test_what_is_missing_is_not_found(place):
    assert not place.store.exists(place.url("nothing"))
    with pytest.raises(NotFound, match="nothing does not exist"):
        place.store.read(place.url("nothing"))
    with pytest.raises(NotFound):
        place.store.size(place.url("nothing"))


def test_a_directory_is_not_an_object(place):
    place.store.write(place.url("chk-1/a"), b"x")

    assert place.store.exists(place.url("chk-1/a"))
    assert place.store.list(place.url("chk")) == ()


def test_a_listing_shows_every_object_below_by_its_url(place):
    for name in ("b", "a/2", "a/1/deep"):
        place.store.write(place.url(name), b"x")

    assert place.store.list(place.directory) == tuple(
        place.url(name) for name in ("a/1/deep", "a/2", "b")
    )
    assert place.store.list(place.url("a")) == (place.url("a/1/deep"), place.url("a/2"))
    assert place.store.list(place.url("none")) == ()


def test_deleting_what_is_gone_is_fine(place):
    """C9: an interrupted deletion can be taken up again."""
    place.store.write(place.url("d/a"), b"x")
    place.store.write(place.url("d/b"), b"x")

    place.store.delete([place.url("d/a"), place.url("d/gone"), place.url("e/gone")])

    assert place.store.list(place.directory) == (place.url("d/b"),)


def test_a_deleted_place_can_be_written_to_again(place):
    place.store.write(place.url("chk-1/a"), b"x")
    place.store.delete([place.url("chk-1/a")])
    place.store.write(place.url("chk-1/a"), b"y")

    assert place.store.read(place.url("chk-1/a")) == b"y"


def test_a_new_directory_is_accepted_and_a_used_one_refused(place):
    """C11: a savepoint has a place of its own."""
    place.store.make_new(place.url("savepoint"))
    place.store.make_new(place.url("savepoint"))
    place.store.write(place.url("savepoint/_metadata"), b"{}")

    with pytest.raises(JobRejected, match=r"savepoint: it is not empty, .* choose a directory"):
        place.store.make_new(place.url("savepoint"))


def test_only_the_first_of_two_creates(place):
    """C17: an entry of the log has one writer."""
    assert place.store.create_exclusive(place.url("log/0"), b"by a")
    assert not place.store.create_exclusive(place.url("log/0"), b"by b")
    assert place.store.read(place.url("log/0")) == b"by a"


def test_finding_our_own_content_is_success(place):
    """C17: a try whose answer was lost may have won."""
    assert place.store.create_exclusive(place.url("log/0"), b"by a")
    assert place.store.create_exclusive(place.url("log/0"), b"by a")


@pytest.mark.parametrize("round_number", range(5))
def test_of_racing_threads_exactly_one_creates(place, round_number):
    """C17: whichever process was paused, and wherever it continues."""
    url = place.url(f"log/{round_number}")
    writers = [f"driver {n}".encode() for n in range(8)]

    with ThreadPoolExecutor(len(writers)) as pool:
        won = list(pool.map(lambda writer: place.store.create_exclusive(url, writer), writers))

    assert won.count(True) == 1
    assert place.store.read(url) == writers[won.index(True)]


def test_a_scheme_that_cannot_create_exclusively_is_refused():
    """C17: rather no checkpoint than two drivers."""
    with pytest.raises(JobRejected, match=r"sftp:// cannot hold checkpoints .* use s3:// or file"):
        store_for("sftp://host/checkpoints")


def test_memory_is_refused_above_its_size(in_memory):
    """S7: the driver's heap is for experiments."""
    in_memory.store.write(in_memory.url("a"), bytes(40 << 20))
    in_memory.store.write(in_memory.url("a"), bytes(40 << 20))

    with pytest.raises(
        JobRejected, match=r"holds at most 64 MiB, for experiments. Remedy: keep checkpoint"
    ):
        in_memory.store.write(in_memory.url("b"), bytes(40 << 20))
    assert not in_memory.store.exists(in_memory.url("b"))


def test_what_was_written_whole_leaves_nothing_unfinished(place):
    """S4."""
    place.store.write(place.url("chk-1/a"), b"x")
    place.store.create_exclusive(place.url("log/0"), b"x")

    assert place.store.list_unfinished(place.directory) == ()


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("/data/checkpoints", "file:///data/checkpoints"),
        ("file:/data/checkpoints", "file:///data/checkpoints"),
        ("file:///data/checkpoints", "file:///data/checkpoints"),
        ("s3://bucket/checkpoints", "s3://bucket/checkpoints"),
        ("", ""),
    ],
)
def test_a_path_of_this_machine_is_a_file(written, url):
    """S7, D2: as in Spark."""
    assert as_url(written) == url
