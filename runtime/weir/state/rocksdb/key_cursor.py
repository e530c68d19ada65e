"""The key that is being worked on, as RocksDB has it."""

from weir.ports.keyed_state import Cursor, Key


class KeyCursor(Cursor):
    """A key with its bytes: those of its key group, and its own."""

    __slots__ = ("encoded", "group", "key")

    def __init__(self) -> None:
        super().__init__()
        self.key: Key = ()
        self.group = self.encoded = b""
