"""Finds what dead drivers and attempts left in a job's directory, and nobody refers to (spec S4).

Reading comes first, then one decision on what was read, then the deletion, and only if the job has
not been taken over meanwhile. Whatever is in doubt stays: savepoints, every directory that is no
checkpoint's, files of the newest epoch, files whose epoch is not known. A log that cannot be read
to its end, or a checkpoint whose references cannot be read, refuses the whole collection.

Temporary files belong to no epoch. One to which nothing was written for long is of a write that has
broken off; if that should be wrong, its writer is refused and tries again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import fsspec

from weir.core.checkpoint_paths import manifest_path
from weir.core.ids import Epoch, Millis
from weir.core.log_entries import CheckpointLogged, Entry
from weir.core.restore_decision import Damaged, candidates
from weir.core.retention import StorageFacts, StoredFile, garbage
from weir.core.snapshots import Manifest
from weir.errors import JobRejected, Unavailable
from weir.storage import manifests
from weir.storage.log_entries import JobLog
from weir.storage.object_store import RETRY_AFTER_S, ObjectStore

Entries = tuple[tuple[int, Entry], ...]

MANIFEST = manifest_path("")
OURS = re.compile(r"(chk-\d+|shared|taskowned)/")
"""What checkpoints are made of, below a job's directory; all else there is none of our business."""

_BELOW = re.compile(r"^.*/(?=(chk-\d+|shared|taskowned)/)")
ABANDONED_AFTER_MS = 3_600_000
"""A write that goes on changes its temporary file far more often."""

_STATE_FILE = re.compile(r"-e(\d+)-a\d+$")


@dataclass(frozen=True, slots=True)
class StorageScan:
    """What was read of a job's directory."""

    directory: str
    epoch: Epoch
    """The newest: whoever reigns now, or reigned last."""
    listed: tuple[str, ...]
    epochs: Mapping[str, Epoch]
    """Of the manifests, which say it inside; a state file says it in its name."""
    referenced: frozenset[str]
    """By the checkpoints that the log offers and by savepoints, with their manifests."""
    changed_at: Mapping[str, Millis] = field(default_factory=dict)
    """When files were written, where somebody wants to know."""
    unfinished: Mapping[str, Millis] = field(default_factory=dict)
    """Temporary files of writes, and when something was written to them last."""


def scan(store: ObjectStore, directory: str) -> StorageScan:
    """Look through the directory; again, if the job went on and took something from under us."""
    entries = read_log(store, directory)
    while True:
        try:
            return _scanned(store, directory, entries)
        except JobRejected:
            before, entries = entries, read_log(store, directory)
            if entries == before:
                raise


def _scanned(store: ObjectStore, directory: str, entries: Entries) -> StorageScan:
    listed = store.list(directory)
    kept = dict(_kept(store, entries, listed, directory))
    own = [url for url in listed if url.endswith(MANIFEST) and is_ours(url, directory)]
    found = {url: kept[url] if url in kept else manifests.read(store, url) for url in own}
    names = {name_of(url) for url in _references(kept)}
    return StorageScan(
        directory,
        _newest_epoch(entries),
        listed,
        {url: each.epoch for url, each in found.items() if isinstance(each, Manifest)},
        frozenset(url for url in listed if name_of(url) in names),
        unfinished=written_at(store.list_unfinished(directory)),
    )


def unreferenced(found: StorageScan, before: Millis | None = None) -> tuple[str, ...]:
    """What may be deleted, manifests first; if a time is given, only what was written before it.

    A checkpoint without its manifest is none, so one that is half deleted misleads nobody.
    """
    known = (StoredFile(url, epoch) for url, epoch in _dated(found))
    unwanted = garbage(StorageFacts(found.epoch, tuple(known), found.referenced))
    old = (
        url
        for url in unwanted
        if before is None or (url in found.changed_at and found.changed_at[url] < before)
    )
    return tuple(sorted(old, key=lambda url: (not url.endswith(MANIFEST), url)))


def abandoned(found: StorageScan, now: Millis) -> tuple[str, ...]:
    """Temporary files that no write will finish."""
    return tuple(url for url, at in found.unfinished.items() if now - at > ABANDONED_AFTER_MS)


def collect(store: ObjectStore, found: StorageScan, unwanted: Iterable[str]) -> None:
    """Delete, unless another driver reigns than when we looked: it may have restored anything."""
    if _newest_epoch(read_log(store, found.directory)) != found.epoch:
        raise JobRejected(
            f"{found.directory} was not collected",
            "another driver took the job over while its files were listed",
            "collect again",
        )
    store.delete(unwanted)


def written_at(urls: Iterable[str]) -> dict[str, Millis]:
    """When each was written that is still there; a store is not asked for times otherwise."""
    times: dict[str, Millis] = {}
    for url in urls:
        try:
            files, path = fsspec.core.url_to_fs(url)
            times[url] = Millis(int(files.modified(path).timestamp() * 1_000))
        except FileNotFoundError:
            continue
        except OSError as problem:
            raise Unavailable(
                f"the age of {url} is not known",
                str(problem),
                "check the storage, and try again",
                retry_after=RETRY_AFTER_S,
            ) from problem
    return times


def read_log(store: ObjectStore, directory: str) -> Entries:
    entries = JobLog(store, directory).read()
    if entries is None:
        raise JobRejected(
            f"the log of {directory} could not be read to its end",
            "it changed or failed while it was read, so the files that it refers to are not known",
            "try again; if it stays so, restore the log from a copy",
        )
    if not entries:
        raise JobRejected(
            f"{directory} is not a job's directory",
            "it has no log",
            "name the directory {storage}/{job} that has log/ in it",
        )
    return entries


def name_of(url: str) -> str:
    """What a file is called below whatever its job's directory is called.

    One directory has many URLs, by links, mounts and ``s3a``; the one that manifests hold need not
    be the one that we were told.
    """
    return _BELOW.sub("", url)


def is_ours(url: str, directory: str) -> bool:
    return bool(OURS.match(url.removeprefix(f"{directory}/")))


def _newest_epoch(entries: Entries) -> Epoch:
    return Epoch(max(entry.epoch for _, entry in entries))


def _dated(found: StorageScan) -> Iterator[tuple[str, Epoch]]:
    """The files of checkpoints whose epoch is known."""
    for url in found.listed:
        if not is_ours(url, found.directory):
            continue
        named = _STATE_FILE.search(url)
        if named:
            yield url, Epoch(int(named[1]))
        elif url in found.epochs:
            yield url, found.epochs[url]


def _kept(
    store: ObjectStore, entries: Entries, listed: Iterable[str], directory: str
) -> Iterator[tuple[str, Manifest]]:
    """Every manifest whose references count; one of the line that cannot be read refuses."""
    line = [candidate.path for candidate in candidates(entries)]
    for path in line:
        manifest = manifests.read(store, path)
        if isinstance(manifest, Manifest):
            yield path, manifest
        elif path == line[-1] or store.exists(path):
            raise _unknown_references(path, manifest)
    logged = [e.manifest for _, e in entries if isinstance(e, CheckpointLogged)]
    aside = [url for url in listed if url.endswith(MANIFEST) and not is_ours(url, directory)]
    for path in dict.fromkeys([*(p for p in logged if not is_ours(p, directory)), *aside]):
        manifest = manifests.read(store, path)
        if isinstance(manifest, Manifest):
            yield path, manifest


def _unknown_references(path: str, damaged: Damaged) -> JobRejected:
    return JobRejected(
        f"manifest {path} is offered by the log and cannot be read",
        f"{damaged.why}; so the files that it refers to are not known",
        "bring the file back, or start the job from another checkpoint or savepoint, and "
        "collect then",
    )


def _references(kept: Mapping[str, Manifest]) -> Iterator[str]:
    for path, manifest in kept.items():
        yield path
        yield from (file.path for file in manifest.files())
