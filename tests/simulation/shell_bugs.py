"""Planted bugs around the core: in state, storage, connectors, and whatever no schedule can show.

The simulator runs the core alone, so these are for the tests that sit beside the sabotaged module.
One passage each, as plausible as the others.
"""

from simulation.sabotage import Bug

_STORAGE = "tests/weir/storage"
_CORE = "tests/weir/core"

SHELL_BUGS = (
    # S13: local copies
    Bug(
        "a damaged local copy is believed",
        ("S13", "C18"),
        "weir.storage.local_copies",
        "            if content.size == file.bytes and "
        "xxhash.xxh3_64_hexdigest(content) == file.checksum:\n",
        "            if True:\n",
        (f"{_STORAGE}/test_local_copies.py",),
    ),
    Bug(
        "what a dead process copied stays for ever",
        ("S13",),
        "weir.storage.local_copies",
        "if int(checkpoint) < owner.checkpoint and name not in names:",
        "if False:",
        (f"{_STORAGE}/test_local_copies.py",),
    ),
    Bug(
        "a copy that newer state builds on is cleared away",
        ("S13",),
        "weir.storage.local_copies",
        "if int(checkpoint) < owner.checkpoint and name not in names:",
        "if int(checkpoint) < owner.checkpoint:",
        (f"{_STORAGE}/test_local_copies.py",),
    ),
    Bug(
        "an index is seated anywhere but beside its copies",
        ("S13",),
        "weir.core.placement",
        "slots[slot].disk != disk, ",
        "slots[slot].disk == disk, ",
        (f"{_CORE}/test_placement.py",),
    ),
    Bug(
        "the copies found last count, however old",
        ("S13",),
        "weir.core.roster",
        "if index not in found or found[index].checkpoint < checkpoint:",
        "if True:",
        (f"{_CORE}/test_attempt.py",),
    ),
    # R8
    Bug(
        "a stuck job is left alone",
        ("R8",),
        "weir.core.health",
        "return self.deadline is not None and self.deadline <= now",
        "return False",
        (f"{_CORE}/test_job.py",),
    ),
)
