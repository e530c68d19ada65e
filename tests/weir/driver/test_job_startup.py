"""Taking a job over: read to the end, then one exclusive creation, then restore."""

import pytest

from coordinated_job import DIRECTORY, SUM, TOPOLOGY, a_manifest, a_topology
from failing_store import FailingStore
from weir.core.coordinator.coordinator_state import Unclaimed
from weir.core.ids import CheckpointId, Epoch
from weir.core.lifecycle import JobStatus
from weir.core.log_entries import CheckpointLogged, EpochTaken, JobClosed
from weir.core.restore_decision import ReplayCommit, RestoreFrom, RestoreRequest, StartFresh
from weir.core.snapshots import CheckpointKind
from weir.core.takeover import Liveness
from weir.core.topology import Topology
from weir.driver.job_startup import (
    AlreadyEnded,
    JobStartup,
    TakenOver,
    inherited_max_parallelism,
    is_new,
    refuse_running_duplicate,
)
from weir.errors import JobRejected, Unavailable
from weir.storage import manifests
from weir.storage.job_log_store import JobLog
from weir.storage.object_store import NotFound, OutcomeUnknown, WriteFailed

WISH = RestoreRequest("first submission")


class Takeover:
    """A driver that starts, on a store that the test can disturb."""

    def __init__(self):
        self.store = FailingStore()
        self.journal = JobLog(self.store, DIRECTORY)
        self.pauses = []
        self.while_pausing = []

        self.asked = []
        self.found = Liveness.GONE

    def start(self, restore_request=WISH, driver="driver-b", topology=TOPOLOGY):
        starting = JobStartup(
            self.store, self.journal, DIRECTORY, driver, restore_request, self.pause, ask=self.ask
        )
        return starting.take_over(topology)

    def ask(self, last):
        self.asked.append(last.driver)
        return self.found

    def pause(self, seconds):
        self.pauses.append(seconds)
        if self.while_pausing:
            self.while_pausing.pop(0)()

    def reigned(self, index=0, epoch=1, deployment="first submission"):
        entry = EpochTaken(Epoch(epoch), "driver-a", deployment, False, "", False, CheckpointId(17))  # noqa: FBT003
        self.journal.create(index, entry)

    def completed(self, index, checkpoint, kind=CheckpointKind.CHECKPOINT):
        manifest = a_manifest(checkpoint, kind)
        manifests.write(self.store, manifest)
        path = f"{manifest.location}/_metadata"
        entry = CheckpointLogged(
            Epoch(1), "driver-a", CheckpointId(checkpoint), kind, path, CheckpointId(40)
        )
        self.journal.create(index, entry)
        return manifest

    def newest(self):
        return self.journal.read()[-1]

    def goes_on_beside(self, index, checkpoint, subsumed):
        """The driver before completes and subsumes, once the log was read and before more is."""
        read = self.store.read

        def raced(url):
            if url.endswith("_metadata"):
                self.store.read = read
                self.completed(index, checkpoint)
                self.store.delete([f"{subsumed.location}/_metadata"])
            return read(url)

        self.store.read = raced


@pytest.fixture
def job():
    return Takeover()


def test_the_first_driver_begins_with_nothing(job):
    """C15."""
    begun = job.start()
    assert begun.resolution == StartFresh()
    assert begun.epoch_state.epoch == 1
    assert job.newest()[1].driver == "driver-b"
    assert job.pauses == []


def test_a_restarted_driver_goes_on_from_the_newest_checkpoint(job):
    """C15, R1."""
    job.reigned()
    job.completed(1, 3)
    manifest = job.completed(2, 4)
    begun = job.start()
    assert isinstance(begun.resolution, RestoreFrom)
    assert begun.resolution.manifest == manifest
    assert begun.epoch_state.epoch == 2
    assert begun.epoch_state.next_id >= 40


def test_a_takeover_consumes_the_entry_that_the_driver_before_needs(job):
    """C17."""
    job.reigned()
    begun = job.start()
    assert begun.epoch_state.index == 1
    assert not job.journal.create(1, JobClosed(1, "driver-a", JobStatus.FINISHED, True, 17))  # noqa: FBT003


def test_everything_is_read_again_when_another_was_faster(job):
    """C17: what was read is no longer the end of the log."""
    job.reigned()
    create = job.store.create_exclusive

    def raced(url, data):
        job.store.create_exclusive = create
        job.completed(1, 4)
        return create(url, data)

    job.store.create_exclusive = raced
    begun = job.start()
    assert isinstance(begun.resolution, RestoreFrom)
    assert begun.resolution.manifest.checkpoint == 4
    assert begun.epoch_state.index == 2


def test_a_takeover_beside_a_driver_that_subsumes_reads_the_log_again(job):
    """C17 C15: a manifest that was deleted while the log was read is no damage."""
    job.reigned()
    job.goes_on_beside(2, 4, subsumed=job.completed(1, 3))

    begun = job.start()

    assert isinstance(begun.resolution, RestoreFrom)
    assert begun.resolution.manifest.checkpoint == 4
    assert begun.epoch_state.index == 3


def test_state_files_that_go_while_they_are_judged_refuse_nothing(job):
    """C17 S12: what does not fit counts only if the log is still the one that was read."""
    job.reigned()
    job.completed(1, 3)
    judged = []

    def judge(manifest):
        judged.append(manifest.checkpoint)
        if len(judged) == 1:
            job.completed(2, 4)
            raise NotFound(f"{DIRECTORY}/shared/a")

    starting = JobStartup(job.store, job.journal, DIRECTORY, "driver-b", WISH, job.pause, judge)

    assert starting.take_over(TOPOLOGY).resolution.manifest.checkpoint == 4
    assert judged == [3, 4]


def test_a_submission_that_wants_no_state_begins_a_line_of_its_own(job):
    """K4 C19: ids go on, the checkpoints before stay, and its next driver goes on from its own."""
    job.reigned()
    old = job.completed(1, 4)
    restore_request = RestoreRequest("second submission", fresh=True)
    begun = job.start(restore_request)
    own = job.completed(3, 41)

    assert (begun.resolution, begun.epoch_state.owned) == (StartFresh(), ())
    assert begun.epoch_state.next_id == 40
    assert manifests.read(job.store, f"{old.location}/_metadata") == old
    assert job.start(restore_request).resolution.manifest == own


@pytest.mark.parametrize("acts", [True, False], ids=["it is there", "it is not there"])
@pytest.mark.parametrize("problem", [OutcomeUnknown("no answer"), WriteFailed("full")], ids=repr)
def test_an_entry_whose_fate_is_unknown_is_created_again(job, acts, problem):
    """C17, C18: it is ours even if an earlier try put it there."""
    job.store.fail("create", problem, acts=acts)
    begun = job.start()
    assert begun.epoch_state.index == 0
    assert len(job.pauses) == 1


def test_storage_that_does_not_answer_is_asked_again(job):
    """R1: time may heal it."""
    job.store.fail("read", OutcomeUnknown("no answer"))
    assert isinstance(job.start(), TakenOver)
    assert len(job.pauses) == 1


def test_a_log_that_is_truncated_while_it_is_read_is_read_again(job):
    """C17: a reader that is not sure reads again."""
    job.reigned()
    job.store.write(f"{DIRECTORY}/log/floor", b'{"floor": 5}')
    job.while_pausing.append(lambda: job.store.delete([f"{DIRECTORY}/log/floor"]))
    assert isinstance(job.start(), TakenOver)
    assert len(job.pauses) == 1


def test_a_submission_that_has_ended_stays_ended(job):
    """C12: a driver that wakes after the end has no work."""
    job.reigned()
    closed = JobClosed(Epoch(1), "driver-a", JobStatus.FINISHED, True, CheckpointId(17))  # noqa: FBT003
    job.journal.create(1, closed)
    assert job.start() == AlreadyEnded(JobStatus.FINISHED)
    assert job.newest()[0] == 1


def test_another_submission_after_the_end_begins_again(job):
    """C13: from the checkpoint that was retained."""
    job.reigned()
    job.completed(1, 4)
    closed = JobClosed(Epoch(1), "driver-a", JobStatus.CANCELED, True, CheckpointId(17))  # noqa: FBT003
    job.journal.create(2, closed)
    begun = job.start(RestoreRequest("second submission"))
    assert begun.resolution.manifest.checkpoint == 4


def test_a_stop_that_was_begun_is_only_brought_to_its_end(job):
    """C11."""
    job.reigned()
    job.completed(1, 4, CheckpointKind.SAVEPOINT_SUSPEND)
    assert isinstance(job.start().resolution, ReplayCommit)


def test_a_savepoint_is_restored_by_its_path_and_belongs_to_its_owner(job):
    """C13, C16."""
    manifest = a_manifest(7, CheckpointKind.SAVEPOINT)
    manifests.write(job.store, manifest)
    begun = job.start(RestoreRequest("first submission", path=f"{manifest.location}/_metadata"))
    assert begun.resolution.manifest == manifest
    assert begun.epoch_state.start == Unclaimed(manifest)


def test_a_damaged_manifest_is_refused_with_its_path_the_reason_and_a_remedy(job):
    """S8, U3: and the one before it is offered; nothing was written."""
    job.reigned()
    job.completed(1, 3)
    damaged = job.completed(2, 4)
    job.store.write(f"{damaged.location}/_metadata", b"{")
    with pytest.raises(JobRejected) as refused:
        job.start()
    words = str(refused.value)
    assert words.startswith(
        f"manifest {damaged.location}/_metadata cannot be restored: it cannot be read: "
    )
    assert "chk-3/_metadata by path" in words
    assert job.newest()[0] == 2


def test_state_without_an_operator_is_refused(job):
    """C15."""
    manifest = a_manifest(7, CheckpointKind.SAVEPOINT)
    manifests.write(job.store, manifest)
    without = Topology(tuple(o for o in a_topology().operators if o.id != SUM), ())
    with pytest.raises(JobRejected, match="state of operator 'sum'"):
        job.start(RestoreRequest("d", path=f"{manifest.location}/_metadata"), topology=without)


# Before the graph is known


FIRST_LOOKS = {
    "what is inherited": lambda job: inherited_max_parallelism(
        job.store, DIRECTORY, WISH, job.pause
    ),
    "whether it is new": lambda job: is_new(job.store, DIRECTORY, WISH, job.pause),
}


@pytest.mark.parametrize("look", FIRST_LOOKS.values(), ids=FIRST_LOOKS)
def test_a_job_that_starts_while_storage_is_away_waits_for_it(job, look):
    """R1, K7: a driver that ended would be one more failed start of a version that is good."""
    job.reigned()
    job.completed(1, 4)
    there = look(job)
    for _ in range(5):
        job.store.fail("read", Unavailable("no answer", retry_after=1.0))

    assert look(job) == there
    assert len(job.pauses) == 5


def test_a_manifest_that_storage_does_not_give_is_asked_for_again(job):
    """S11, R1: the log was read, and then storage went away."""
    manifest = job.completed(0, 4)
    job.reigned()
    restore_request = RestoreRequest("d", f"{manifest.location}/_metadata")
    read = job.store.read

    def mute(url):
        if url.endswith("_metadata"):
            job.store.read = read
            raise Unavailable("no answer", retry_after=1.0)
        return read(url)

    job.store.read = mute

    assert inherited_max_parallelism(job.store, DIRECTORY, restore_request, job.pause)["sum"] == 128
    assert len(job.pauses) == 1


@pytest.mark.parametrize("look", FIRST_LOOKS.values(), ids=FIRST_LOOKS)
def test_a_log_that_moves_under_the_first_look_is_read_again(job, look):
    """C17: a truncated log is not mistaken for the log of a new job."""
    job.reigned()
    job.completed(1, 4)
    there = look(job)
    job.store.write(f"{DIRECTORY}/log/floor", b'{"floor": 5}')
    job.while_pausing.append(lambda: job.store.delete([f"{DIRECTORY}/log/floor"]))

    assert look(job) == there
    assert len(job.pauses) == 1


# Max parallelism


def test_a_job_that_sets_no_max_parallelism_inherits_that_of_its_newest_checkpoint(job):
    """S11: max parallelism is fixed by the first state."""
    job.reigned()
    manifest = job.completed(1, 4)
    inherited = inherited_max_parallelism(job.store, DIRECTORY, WISH)
    assert inherited == {width.operator: width.max_parallelism for width in manifest.widths}


def test_what_is_inherited_beside_a_driver_that_subsumes_is_read_again(job):
    """S11 C17: to inherit nothing then would change the number of key groups."""
    job.reigned()
    job.goes_on_beside(2, 4, subsumed=job.completed(1, 3))

    assert inherited_max_parallelism(job.store, DIRECTORY, WISH, job.pause)["sum"] == 128


def test_a_named_savepoint_says_what_is_inherited(job):
    """S11, C13."""
    manifest = a_manifest(7, CheckpointKind.SAVEPOINT)
    manifests.write(job.store, manifest)
    path = f"{manifest.location}/_metadata"
    assert inherited_max_parallelism(job.store, DIRECTORY, RestoreRequest("d", path))["sum"] == 128


@pytest.mark.parametrize("path", ["", "memory://nowhere/_metadata"])
def test_a_job_without_a_past_inherits_nothing(job, path):
    """S11: if the named checkpoint is missing, the restore reports it."""
    assert inherited_max_parallelism(job.store, DIRECTORY, RestoreRequest("d", path)) == {}


def test_a_start_without_state_inherits_nothing(job):
    """S11 K4: there is no state that would fix the number of key groups."""
    job.reigned()
    job.completed(1, 4)
    fresh = RestoreRequest("second submission", fresh=True)

    assert inherited_max_parallelism(job.store, DIRECTORY, fresh) == {}


def test_a_job_that_shall_begin_without_state_is_as_good_as_new_once(job):
    """K4 D1: its initial state is used, and not again when its driver is restarted."""
    job.reigned()
    job.completed(1, 4)

    assert not is_new(job.store, DIRECTORY, RestoreRequest("second submission"))
    assert is_new(job.store, DIRECTORY, RestoreRequest("second submission", fresh=True))
    assert not is_new(job.store, DIRECTORY, RestoreRequest("first submission", fresh=True))


# Another driver of the same name


def test_a_live_driver_of_another_submission_is_not_replaced(job):
    """C17, U3: it is named, with all remedies, and the log is left as it was."""
    job.reigned()
    job.completed(1, 4)
    job.found = Liveness.LIVES
    with pytest.raises(JobRejected, match=r"driver-a.*weir stop.*--take-over.*weir\.takeOver"):
        job.start(RestoreRequest("second submission"))
    assert job.newest()[0] == 1


@pytest.mark.parametrize("found", [Liveness.GONE, Liveness.UNKNOWN])
def test_a_driver_that_does_not_answer_is_replaced_at_once(job, found, caplog):
    """R1, C17: and one that may live is named in a warning."""
    job.reigned()
    job.completed(1, 4)
    job.found = found
    assert job.start(RestoreRequest("second submission")).resolution.manifest.checkpoint == 4
    assert job.pauses == []
    assert ("driver-a" in caplog.text) == (found is Liveness.UNKNOWN)


def test_a_submission_that_takes_over_replaces_a_live_driver(job):
    """C17, K2: the one before is fenced by the log."""
    job.reigned()
    job.found = Liveness.LIVES
    assert isinstance(job.start(RestoreRequest("second submission", takes_over=True)), TakenOver)
    assert job.asked == []


def test_of_two_submissions_at_once_the_slower_asks_the_faster(job):
    """C17: the driver that lost the race for the entry reads the log and probes the new owner."""
    job.found = Liveness.LIVES
    create = job.store.create_exclusive

    def raced(url, data):
        job.store.create_exclusive = create
        job.reigned()
        return create(url, data)

    job.store.create_exclusive = raced
    with pytest.raises(JobRejected, match="another driver runs"):
        job.start(RestoreRequest("second submission"))
    assert job.asked == ["driver-a"]


def test_a_live_namesake_is_refused_before_anything_is_started(job):
    """U3."""
    job.reigned()
    job.found = Liveness.LIVES
    with pytest.raises(JobRejected, match="another driver runs"):
        refuse_running_duplicate(job.store, DIRECTORY, RestoreRequest("second submission"), job.ask)


def test_a_job_that_an_earlier_submission_finished_is_over(job):
    """R6: nothing is written, so a later start finds the same."""
    job.reigned()
    closed = JobClosed(Epoch(1), "driver-a", JobStatus.FINISHED, False, CheckpointId(17))  # noqa: FBT003
    job.journal.create(1, closed)
    over = AlreadyEnded(JobStatus.FINISHED, earlier=True)
    assert job.start(RestoreRequest("second submission")) == over
    assert job.newest()[0] == 1
    assert isinstance(job.start(RestoreRequest("third submission", reruns=True)), TakenOver)


def test_a_job_that_has_finished_does_not_begin_with_its_initial_state_again(job):
    """R6, D1: unless it is run again."""
    job.reigned()
    closed = JobClosed(Epoch(1), "driver-a", JobStatus.FINISHED, False, CheckpointId(17))  # noqa: FBT003
    job.journal.create(1, closed)
    assert not is_new(job.store, DIRECTORY, RestoreRequest("second submission"))
    assert is_new(job.store, DIRECTORY, RestoreRequest("second submission", reruns=True))
