"""Two drivers commit one transaction at the same moment, where files are moved by copying them."""

import pyarrow as pa

from weir.connectors.commit_records import CommitRecords
from weir.connectors.encodings import Encoding
from weir.connectors.file_sink import FileCommitter
from weir.connectors.staging import Staging
from weir.storage.memory_store import MemoryStore

OUTPUT = "memory://output"
NAME = "files-0-1-1-1-token"


class SlowStore:
    """A store whose user is frozen before its first copy, while another driver acts."""

    def __init__(self, store, meanwhile):
        self._store = store
        self._meanwhile = meanwhile

    def __getattr__(self, name):
        return getattr(self._store, name)

    def copy(self, source, target):
        meanwhile, self._meanwhile = self._meanwhile, lambda: None
        meanwhile()
        self._store.copy(source, target)


def a_committer(store):
    return FileCommitter(Staging(store, OUTPUT, Encoding.PARQUET), CommitRecords(store, OUTPUT))


def test_a_driver_that_froze_while_it_moved_a_file_finds_it_moved_by_its_successor():
    """C17, R5: committing is idempotent, so the zombie learns of its successor by the log."""
    store = MemoryStore()
    staging = Staging(store, OUTPUT, Encoding.PARQUET)
    store.write(staging.url(NAME), pa.py_buffer(b"rows"))
    successor = a_committer(store)
    zombie = a_committer(SlowStore(store, lambda: successor.commit(1, (NAME,))))
    zombie.commit(1, (NAME,))
    assert [record.names for record in CommitRecords(store, OUTPUT).all()] == [(NAME,)]
