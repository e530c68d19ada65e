"""A local copy is a shortcut that never leads astray."""

import logging

import pyarrow as pa
import pytest

from weir.storage.files import FileStore
from weir.storage.local_copies import LocalCopies
from weir.storage.state_files import put

CONTENT = pa.py_buffer(b"state" * 1000)


@pytest.fixture
def file(tmp_path):
    return put(FileStore(), (tmp_path / "remote").as_uri(), CONTENT)


@pytest.fixture
def copies(tmp_path):
    return LocalCopies(tmp_path / "local")


def test_a_copy_is_found_by_the_file_it_stands_for(file, copies):
    """S13: on this machine, whichever process kept it."""
    copies.keep(file.path, CONTENT)

    assert copies.find(file).to_pybytes() == CONTENT.to_pybytes()


def test_a_file_without_a_copy_has_none(file, copies):
    """S13: another machine, or a disk that did not survive."""
    assert copies.find(file) is None


@pytest.mark.parametrize("content", [b"", b"state" * 999, b"strte" * 1000])
def test_a_damaged_copy_is_not_believed(file, copies, content, caplog):
    """S13 C18: cut or changed, the file itself is read instead."""
    copies.keep(file.path, pa.py_buffer(content))

    with caplog.at_level(logging.WARNING):
        assert copies.find(file) is None
    assert "reading the file itself" in caplog.text


def test_a_disk_that_fails_costs_the_copy_and_nothing_else(file, tmp_path, caplog):
    """S13: the checkpoint is as durable as before."""
    (tmp_path / "local").write_text("not a directory")
    copies = LocalCopies(tmp_path / "local")

    with caplog.at_level(logging.WARNING):
        copies.keep(file.path, CONTENT)
        copies.forget([file.path])
    assert "No local copy" in caplog.text
    assert copies.find(file) is None


def test_a_copy_that_is_forgotten_is_gone(file, copies, tmp_path):
    """S13: cleaned up with the checkpoints that referred to it."""
    copies.keep(file.path, CONTENT)
    copies.forget([file.path, "file:///never/kept"])

    assert list((tmp_path / "local").iterdir()) == []
