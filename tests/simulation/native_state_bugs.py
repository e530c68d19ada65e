"""Planted bugs in native snapshots: what is uploaded, referred to, opened and clipped wrongly.

Simulated operators keep no files of a backend, so the tests stand alone.
"""

from simulation.source_patch import Bug

_RESTORE = "weir.core.native_restore"
_RESTORE_TESTS = ("tests/weir/core/test_native_restore.py",)
_FILES = "weir.slot.native_files"
_FILES_TESTS = ("tests/weir/slot/test_native_files.py",)

NATIVE_STATE_BUGS = (
    Bug(
        "a key group at the end of a share is clipped",
        ("S11",),
        _RESTORE,
        "KeyGroupRange(share.groups.last + 1, last)",
        "KeyGroupRange(share.groups.last, last)",
        _RESTORE_TESTS,
    ),
    Bug(
        "the instance with the least state is opened",
        ("S2",),
        _RESTORE,
        "(_estimated_bytes(shares[at]), -at)",
        "(-_estimated_bytes(shares[at]), -at)",
        _RESTORE_TESTS,
    ),
    Bug(
        "the files of an instance are not counted",
        ("S2",),
        "weir.core.snapshots",
        "        for instance in self.native:\n",
        "        for instance in ():\n",
        ("tests/weir/storage/test_manifests.py",),
    ),
    Bug(
        "an increment refers to native files of unknown fate",
        ("S4",),
        _FILES,
        "            below = dict(self._files.base(barrier.base))\n",
        "            below = dict(self._files.base(barrier.base))\n"
        "            for taken in self._files.taken.values():\n"
        "                below |= taken\n",
        _FILES_TESTS,
    ),
    Bug(
        "a native file is known by its name alone",
        ("S4",),
        _FILES,
        '    return f"{instance}/{name}"\n',
        "    return name\n",
        _FILES_TESTS,
    ),
)
