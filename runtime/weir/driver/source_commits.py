"""Notifies sources of completed checkpoints, so that they can release what is never read again.

It listens to the driver's steps and decides nothing. A separate thread notifies the sources,
because user code and external systems may be slow; a checkpoint that completes meanwhile replaces
those that still wait, because it includes them (spec R5).
"""

import logging
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from threading import Thread

from weir.core.coordinator.actions import ReportCompleted
from weir.core.enumerator import Pool
from weir.core.ids import OperatorId, SplitId
from weir.core.job_master import Action, Event, Job
from weir.core.snapshots import Manifest
from weir.ports.sources import SPLITS, CheckpointedSplit, CheckpointListener, Source
from weir.ports.user_code_errors import describe_error
from weir.state.snapshot_files import read_list
from weir.storage.state_files import fetch
from weir.storage.stores import ObjectStore

log = logging.getLogger("weir.driver")

SHUTDOWN_SECONDS = 5.0


class SourceCommits:
    """The sources that listen to checkpoints."""

    def __init__(self, sources: Mapping[OperatorId, Source], store: ObjectStore) -> None:
        self._sources = {o: s for o, s in sources.items() if isinstance(s, CheckpointListener)}
        self._store = store
        self._completed: SimpleQueue[Manifest | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="weir-source-commits", daemon=True)

    def start(self) -> None:
        if self._sources:
            self._thread.start()

    def on_step(self, event: Event, job: Job, actions: tuple[Action, ...]) -> None:
        del event, job
        for action in actions:
            if isinstance(action, ReportCompleted) and action.manifest.kind.commits:
                self._completed.put(action.manifest)

    def close(self) -> None:
        """Notify sources of the last completed checkpoint, if that is quick; then stop them."""
        self._completed.put(None)
        if self._thread.is_alive():
            self._thread.join(SHUTDOWN_SECONDS)

    def _run(self) -> None:
        is_over = False
        while not is_over:
            waiting = [self._completed.get(), *self._rest()]
            is_over = None in waiting
            completed = [manifest for manifest in waiting if manifest is not None]
            for operator, source in self._sources.items():
                if completed:
                    self._notify(operator, source, completed[-1])
                if is_over:
                    self._stop(operator, source)

    def _rest(self) -> Iterator[Manifest | None]:
        while True:
            try:
                yield self._completed.get_nowait()
            except Empty:
                return

    def _notify(self, operator: OperatorId, source: CheckpointListener, manifest: Manifest) -> None:
        pool = dict(manifest.coordinators).get(operator)
        assert isinstance(pool, Pool), "every source has an enumerator"
        try:
            unread = (*pool.free, *self._being_read(operator, manifest))
            source.completed(pool.seen, unread)
        except BaseException as problem:  # noqa: BLE001 - connectors, user code, native code
            log.warning(
                "%s could not commit what has been read: %s", operator, describe_error(problem)
            )

    def _being_read(self, operator: OperatorId, manifest: Manifest) -> Iterator[SplitId]:
        """The splits that readers had not finished."""
        snapshots = (s for s in manifest.snapshots if s.subtask.operator == operator)
        for handle in (handle for snapshot in snapshots for handle in snapshot.lists):
            if handle.name == SPLITS:
                for item in read_list(fetch(self._store, handle.file), 0, handle.items):
                    yield CheckpointedSplit.decode(item).split

    def _stop(self, operator: OperatorId, source: CheckpointListener) -> None:
        try:
            source.stop()
        except BaseException as problem:  # noqa: BLE001 - connectors, user code, native code
            log.warning("%s did not stop cleanly: %s", operator, describe_error(problem))
