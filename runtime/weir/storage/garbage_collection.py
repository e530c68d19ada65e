"""Deletes the unreferenced files of dead drivers and attempts in a job's directory (spec S4).

A scan reads the directory, one decision selects files, and then they are deleted, unless another
driver has taken the job over meanwhile. What is in doubt stays: savepoints, directories that are
not of a checkpoint, files of the newest epoch, files of an unknown epoch. If the log or the
references of a checkpoint cannot be read, nothing is collected.

Temporary files belong to no epoch. One that has not changed for long belongs to an interrupted
write; if the write still runs after all, it fails and is retried.
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
from weir.storage.job_log_store import JobLog
from weir.storage.object_store import RETRY_AFTER_S, ObjectStore

Entries = tuple[tuple[int, Entry], ...]

MANIFEST = manifest_path("")
OURS = re.compile(r"(chk-\d+|shared|taskowned)/")
"""The paths of checkpoint files below a job's directory; everything else there is left alone."""

_BELOW = re.compile(r"^.*/(?=(chk-\d+|shared|taskowned)/)")
ABANDONED_AFTER_MS = 3_600_000
"""A write in progress changes its temporary file far more often."""

_STATE_FILE = re.compile(r"-e(\d+)-a\d+$")


@dataclass(frozen=True, slots=True)
class StorageScan:
    """The files of a job's directory, and what refers to them."""

    directory: str
    epoch: Epoch
    """The newest epoch: of the current or the last driver."""
    listed: tuple[str, ...]
    epochs: Mapping[str, Epoch]
    """Epochs of the manifests, from their content; the name of a state file has its epoch."""
    referenced: frozenset[str]
    """Files of the checkpoints that the log offers and of savepoints, with their manifests."""
    changed_at: Mapping[str, Millis] = field(default_factory=dict)
    """When files were written, if the caller needs it."""
    unfinished: Mapping[str, Millis] = field(default_factory=dict)
    """Temporary files, and when each was written last."""


def scan(store: ObjectStore, directory: str) -> StorageScan:
    """Scan the directory; again, if the running job deleted files during the scan."""
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
    """The files that may be deleted, manifests first; if a time is given, only older files.

    A directory without a manifest is no checkpoint, so a half-deleted one does no harm.
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
    """Temporary files of interrupted writes."""
    return tuple(url for url, at in found.unfinished.items() if now - at > ABANDONED_AFTER_MS)


def collect(store: ObjectStore, found: StorageScan, unwanted: Iterable[str]) -> None:
    """Delete, unless a new driver has started since the scan: it may have restored anything."""
    if _newest_epoch(read_log(store, found.directory)) != found.epoch:
        raise JobRejected(
            f"{found.directory} was not collected",
            "another driver took the job over while its files were listed",
            "collect again",
        )
    store.delete(unwanted)


def written_at(urls: Iterable[str]) -> dict[str, Millis]:
    """When each file was written, without those that are gone."""
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
    """The path of a file relative to its job's directory.

    One directory has many URLs, by links, mounts and ``s3a``; the URL in a manifest may differ from
    the URL that the caller gave.
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
    """Every manifest whose references count; raises if one that the log offers is unreadable."""
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
