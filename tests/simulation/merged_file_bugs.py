"""Planted bugs in merged files: what is acked, deleted, counted and read wrongly.

A file is dead as soon as one subtask gives its checkpoint up, and a simulated slot has one keyed
subtask, which leaves few dead bytes: so some of these harm no schedule and are for tests alone.
"""

from simulation.source_patch import Bug

_POOL = "weir.core.file_pool"
_POOL_TESTS = ("tests/weir/core/test_file_pool.py", "tests/weir/core/test_file_pool_histories.py")
_SLOT_TESTS = ("tests/weir/slot/test_merged_files.py",)
_STORAGE = "tests/weir/storage"

MERGED_FILE_BUGS = (
    Bug(
        "an ack names a merged file that was lost before it",
        ("S6", "C18"),
        _POOL,
        "        if part not in group.failed:\n            group.acked.add(part)\n",
        "        group.acked.add(part)\n",
        _POOL_TESTS,
    ),
    Bug(
        "an ack that a newer checkpoint has overtaken is held for ever",
        ("S6", "R7"),
        _POOL,
        "            if self.groups[checkpoint].is_savepoint is False:\n",
        "            if False:\n",
        _POOL_TESTS,
    ),
    Bug(
        "a savepoint that one subtask never saw is remembered for ever",
        ("S6", "R7"),
        _POOL,
        "if c >= newest or group.is_in_use\n",
        "\n",
        _POOL_TESTS,
    ),
    Bug(
        "a savepoint waits for an ack that was forgotten",
        ("S6",),
        _POOL,
        "        return group.is_late or all(",
        "        return all(",
        _POOL_TESTS,
    ),
    Bug(
        "a part that ended still counts as memory",
        ("S6", "R7"),
        "weir.slot.merged_files",
        "            held.upload.is_held = False\n",
        "            pass\n",
        _SLOT_TESTS,
    ),
    Bug(
        "a subtask acks while its merged file is being written",
        ("S6",),
        _POOL,
        "            if file.stage is not _Stage.DURABLE\n",
        "            if file.stage is _Stage.OPEN\n",
        _POOL_TESTS,
        is_scheduled=True,
    ),
    Bug(
        "a subtask that gives up deletes what others have in its file",
        ("S6",),
        _POOL,
        "        if file.holders or file.stage is _Stage.WRITING:\n",
        "        if file.stage is _Stage.WRITING:\n",
        _POOL_TESTS,
    ),
    Bug(
        "a file that an ack names is deleted by the slot",
        ("S6", "C7"),
        _POOL,
        "                file.is_owned = True\n",
        "",
        _POOL_TESTS,
    ),
    Bug(
        "a merged file that all have given up stays",
        ("S6", "C7"),
        _POOL,
        "            return [] if file.is_owned else [DeleteFile(path)]\n",
        "            return []\n",
        _POOL_TESTS,
    ),
    Bug(
        "a merged file waits for a subtask that has left",
        ("S6",),
        _POOL,
        "            del self.members[subtask]\n",
        "            pass\n",
        _POOL_TESTS,
    ),
    Bug(
        "a failed write fails one of its subtasks only",
        ("S6", "C18"),
        _POOL,
        "        failed = sorted(file.holders)\n",
        "        failed = sorted(file.holders)[:1]\n",
        _POOL_TESTS,
    ),
    Bug(
        "one slow subtask holds back the acks of its slot",
        ("S6",),
        _POOL,
        "                if due is not None and due <= now:\n",
        "                if False:\n",
        _POOL_TESTS,
    ),
    Bug(
        "a merged file grows without a bound",
        ("S6",),
        _POOL,
        "        if file is not None and file.bytes + piece.bytes > most:\n",
        "        if False:\n",
        _POOL_TESTS,
    ),
    Bug(
        "dead bytes are not bounded",
        ("S6",),
        "weir.core.space_amplification",
        "        if sum(sizes[path] for path in live) <= bound * sum(live.values()):\n",
        "        if True:\n",
        ("tests/weir/core/test_space_amplification.py",),
    ),
    Bug(
        "a segment of two subtasks counts twice",
        ("S6", "S11"),
        "weir.core.space_amplification",
        "        segments = {file.segment: file for state in kept for file in state}\n",
        "        segments = dict(enumerate(file for state in kept for file in state))\n",
        ("tests/weir/core/test_space_amplification.py",),
    ),
    Bug(
        "state that must be written anew still refers to one of its files",
        ("S6",),
        "weir.slot.layers",
        "    return kept is None or all(",
        "    return kept is None or any(",
        _SLOT_TESTS,
    ),
    Bug(
        "a piece forgets where it begins in its file",
        ("S6",),
        "weir.slot.merged_files",
        "            file = file._replace(path=place.path, offset=place.offset)\n",
        "            file = file._replace(path=place.path)\n",
        _SLOT_TESTS,
        is_scheduled=True,
    ),
    Bug(
        "what waits in a merged file costs no memory",
        ("S6", "R7"),
        "weir.slot.merged_files",
        "            upload.is_held = True\n",
        "",
        _SLOT_TESTS,
    ),
    Bug(
        "a segment is read from the beginning of its file",
        ("S6",),
        "weir.storage.state_files",
        "        return store.read_range(file.path, file.offset, file.offset + file.bytes)\n",
        "        return store.read_range(file.path, 0, file.bytes)\n",
        (f"{_STORAGE}/test_state_files.py",),
    ),
    Bug(
        "the copies of two segments have one name",
        ("S6", "S13"),
        "weir.core.snapshots",
        '        return f"{self.path}@{self.offset}" if self.offset else self.path\n',
        "        return self.path\n",
        (f"{_STORAGE}/test_local_copies.py",),
    ),
    Bug(
        "the second segment of a shared file is not counted",
        ("S4",),
        "weir.core.shared_state_registry",
        "        for path in paths:\n            references[path] = references.get(path, 0) + 1\n",
        "        for path in set(paths):\n"
        "            references[path] = references.get(path, 0) + 1\n",
    ),
)
