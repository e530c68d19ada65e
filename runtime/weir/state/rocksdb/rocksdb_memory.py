"""The memory of all RocksDB instances of a slot: one budget, shared (spec R7).

A quarter of it holds rows that are not written yet, in Python. The rest is one block cache, in
which the write buffers of all instances are counted, with the indexes and filters of their files.
"""

from rocksdict import BlockBasedIndexType, BlockBasedOptions, Cache, Options, WriteBufferManager

from weir.api.size import MIB
from weir.api.state_config import LEAST_ROCKSDB_MEMORY

_BITS_PER_KEY = 10
_METADATA_BYTES = 4096
_MOST_WRITE_BUFFER = 64 * MIB
_MOST_MANIFEST = MIB
"""Each checkpoint uploads it anew, so it is begun anew before it grows large."""


class RocksDBMemory:
    """Shared by the backends of one slot."""

    def __init__(self, budget: int) -> None:
        assert budget >= LEAST_ROCKSDB_MEMORY, "the configuration refuses less"
        self._unwritten = budget // 4
        self._backends = 0
        cache = budget - self._unwritten
        self.cache = Cache(cache)
        self._write_buffers = cache // 3
        self._buffers = WriteBufferManager.new_write_buffer_manager_with_cache(
            self._write_buffers,
            False,  # noqa: FBT003 - do not stall: a write buffer that is over is flushed
            self.cache,
        )

    def opened(self) -> None:
        self._backends += 1

    def closed(self) -> None:
        self._backends -= 1

    @property
    def unwritten_bytes(self) -> int:
        """How much one backend may hold before it writes, beside the others that are open."""
        return self._unwritten // max(self._backends, 1)

    def options(self) -> Options:
        """Of an instance that shares the budget."""
        table = BlockBasedOptions()
        table.set_block_cache(self.cache)
        table.set_cache_index_and_filter_blocks(True)
        table.set_pin_l0_filter_and_index_blocks_in_cache(True)
        # In pieces: the one filter of a large file does not fit into a part of the cache, and would
        # be read from disk for each key.
        table.set_index_type(BlockBasedIndexType.two_level_index_search())
        table.set_partition_filters(True)
        table.set_metadata_block_size(_METADATA_BYTES)
        table.set_pin_top_level_index_and_filter(True)
        table.set_bloom_filter(_BITS_PER_KEY, False)  # noqa: FBT003 - a filter for each file
        options = Options(raw_mode=True)
        options.create_if_missing(True)  # noqa: FBT003 - takes no name
        options.set_block_based_table_factory(table)
        options.set_write_buffer_manager(self._buffers)
        options.set_write_buffer_size(min(_MOST_WRITE_BUFFER, self._write_buffers // 2))
        options.set_keep_log_file_num(1)
        options.set_max_manifest_file_size(_MOST_MANIFEST)
        return options
