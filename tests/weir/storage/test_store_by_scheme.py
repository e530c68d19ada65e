"""A job's checkpoints and savepoints may lie in different stores."""

import pytest

from weir.errors import JobRejected
from weir.storage.store_by_scheme import StoreByScheme


def test_each_url_finds_the_store_of_its_scheme(tmp_path):
    """S7: any URL that a store is known for."""
    store, file = StoreByScheme(), (tmp_path / "a").as_uri()
    store.write(file, b"on disk")
    store.write("memory://heap/a", b"in memory")

    assert (store.read(file), store.read("memory://heap/a")) == (b"on disk", b"in memory")
    assert (tmp_path / "a").read_bytes() == b"on disk"


def test_a_deletion_may_reach_into_several_stores(tmp_path):
    """C16: a claimed savepoint lies elsewhere than the checkpoints."""
    store, file = StoreByScheme(), (tmp_path / "a").as_uri()
    store.write(file, b"")
    store.write("memory://heap/a", b"")

    store.delete([file, "memory://heap/a"])

    assert not store.exists(file)
    assert not store.exists("memory://heap/a")


def test_an_unknown_scheme_is_refused_by_name():
    """S7 U3: before anything is written."""
    with pytest.raises(JobRejected, match="ftp:// cannot hold checkpoints"):
        StoreByScheme().read("ftp://server/a")
