"""The list of planted bugs: what a tired engineer could write, one passage each.

Every decision of the specification's lines C and A has at least one. They are not meant to be
subtle or clumsy, only plausible; the simulator has to catch each of them by its consequences, and a
test that names the line has to fail.
"""

from simulation.changelog_bugs import CHANGELOG_BUGS
from simulation.merged_file_bugs import MERGED_FILE_BUGS
from simulation.native_state_bugs import NATIVE_STATE_BUGS
from simulation.shell_bugs import SHELL_BUGS
from simulation.slot_bugs import SLOT_BUGS
from simulation.source_patch import Bug

_CORE = "weir.core"
_COORDINATOR = "weir.core.coordinator"

_COORDINATOR_BUGS = (
    # C: the coordinator
    Bug(
        "a record leaves between barrier and snapshot",
        ("C1", "A9", "A12"),
        f"{_CORE}.task",
        "            Prepare(checkpoint),\n            Broadcast(outgoing),\n",
        "            Broadcast(outgoing),\n            Prepare(checkpoint),\n",
    ),
    Bug(
        "the scheduler outlives RUNNING",
        ("C2",),
        f"{_COORDINATOR}.trigger",
        "    state = _without_schedule(state)\n    reason =",
        "    reason =",
    ),
    Bug(
        "queued requests survive the scheduler's stop",
        ("C3",),
        f"{_COORDINATOR}.trigger",
        "drop_requests(state, state.requests.queue, reason)",
        "drop_requests(state, (), reason)",
    ),
    Bug(
        "a split is assigned between the enumerator's snapshot and the trigger",
        ("C4",),
        f"{_COORDINATOR}.trigger",
        "if isinstance(pending, Preparing) and event.operator not in pending.operators:",
        "if False:",
    ),
    Bug(
        "held splits are sent before the trigger",
        ("C4",),
        f"{_COORDINATOR}.trigger",
        "        Trigger(_barrier(state, properties), triggered),\n        *pending.held,\n",
        "        *pending.held,\n        Trigger(_barrier(state, properties), triggered),\n",
    ),
    Bug(
        "readers that wait are not served when splits are found",
        ("R6", "C14"),
        f"{_CORE}.enumerator",
        "        for reader in self.waiting:\n",
        "        for reader in ():\n",
    ),
    Bug(
        "a checkpoint forgets how far discovery has come",
        ("R6",),
        f"{_CORE}.enumerator",
        "return Pool(self.free, self.seen)",
        'return Pool(self.free, "")',
    ),
    Bug(
        "only sources are ever triggered",
        ("C4", "C14"),
        f"{_CORE}.checkpoint_plan",
        "        topology.sender(channel) in finished\n",
        "        False\n",
    ),
    Bug(
        "a checkpoint starts without all subtasks running",
        ("C4",),
        f"{_CORE}.checkpoint_plan",
        "    if missing:\n",
        "    if False:\n",
    ),
    Bug(
        "more checkpoints run than may",
        ("C5", "C6"),
        f"{_CORE}.request_decider",
        "traffic.in_flight >= traffic.max_concurrent and not first.forced",
        "False",
    ),
    Bug(
        "the queue has no end",
        ("C5",),
        f"{_CORE}.request_decider",
        "return Enqueued(longer[:limit], longer[limit:])",
        "return Enqueued(longer)",
    ),
    Bug(
        "a dropped request is never answered",
        ("C5",),
        f"{_COORDINATOR}.request_queue",
        "        actions += fail_request(request, reason, reason.value)\n",
        "",
    ),
    Bug(
        "the pause is forgotten",
        ("C5", "C6"),
        f"{_CORE}.request_decider",
        "if first.is_periodic and not first.forced and traffic.now < traffic.pause_over_at:",
        "if False:",
    ),
    Bug(
        "nothing ever expires",
        ("C6", "C9"),
        f"{_COORDINATOR}.trigger",
        "isinstance(pending, Abortable) and pending.properties.deadline <= state.clock.now",
        "False",
    ),
    Bug(
        "a late ack deletes a savepoint",
        ("C7", "C12"),
        f"{_COORDINATOR}.completion",
        "    if event.checkpoint in state.checkpoints.savepoints:\n        return state, ()\n",
        "",
    ),
    Bug(
        "a repeated ack deletes what its checkpoint owns",
        ("C7",),
        f"{_COORDINATOR}.completion",
        "delete_files(state, retention.unreferenced(paths, owned))",
        "delete_files(state, tuple(paths))",
    ),
    Bug(
        "the state of useless acks stays",
        ("C7",),
        f"{_COORDINATOR}.completion",
        "    return delete_files(state, retention.unreferenced(paths, owned))\n",
        "    return state, ()\n",
    ),
    Bug(
        "an ack counts twice in the registry",
        ("C7",),
        f"{_COORDINATOR}.completion",
        "shared=state.checkpoints.shared.take(shared))",
        "shared=state.checkpoints.shared.take([*shared] * 2))",
    ),
    Bug(
        "commit before completion",
        ("C8",),
        f"{_COORDINATOR}.completion",
        "            return write_entry(state.with_pending(logging), _entry(state, logging))\n",
        "            covered = replace(state.commits, ledgers=_covered(state, pending))\n"
        "            early = replace(state, commits=covered)\n"
        "            entry = _entry(state, logging)\n"
        "            after, said = write_entry(state.with_pending(logging), entry)\n"
        "            return after, (*said, *commit_next(early, state.commits.ledgers))\n",
    ),
    Bug(
        "older checkpoints go before the entry exists",
        ("C8",),
        f"{_COORDINATOR}.completion",
        "            return write_entry(state.with_pending(logging), _entry(state, logging))\n",
        "            completed = state.checkpoints.completed\n"
        "            gone, deleted = delete_checkpoints(state, completed)\n"
        "            left = replace(gone.checkpoints, completed=())\n"
        "            gone = replace(gone, checkpoints=left)\n"
        "            after, said = write_entry(gone.with_pending(logging), _entry(gone, logging))\n"
        "            return after, (*said, *deleted)\n",
    ),
    Bug(
        "two manifests are written at once",
        ("C8",),
        f"{_COORDINATOR}.completion",
        "    if state.checkpoints.is_writing:\n        return state, ()\n    for pending",
        "    for pending",
    ),
    Bug(
        "aborted checkpoints leave their files",
        ("C9",),
        f"{_COORDINATOR}.abort",
        "delete_files(state, (*own, *freed, *manifest))",
        "delete_files(state, ())",
    ),
    Bug(
        "an aborted checkpoint takes its sinks' transactions with it",
        ("C9",),
        f"{_CORE}.commit",
        "t.checkpoint > ledger.covered)",
        "t.checkpoint == checkpoint)",
    ),
    Bug(
        "abort while persisting",
        ("C9", "C18"),
        f"{_COORDINATOR}.pending_checkpoint",
        "Abortable = Preparing | Collecting | Collected\n",
        "Abortable = Preparing | Collecting | Collected | Persisting | Logging\n",
    ),
    Bug(
        "a failed stop leaves the sources waiting",
        ("C9", "C11"),
        f"{_COORDINATOR}.abort",
        "sources_wait and reason not in WHOLE_JOB_GOES_DOWN",
        "False",
    ),
    Bug(
        "an abort names no subtask",
        ("C10",),
        f"{_COORDINATOR}.diagnosis",
        '    return f"{failure}; {_slowest(pending, now)}"',
        "    return failure",
    ),
    Bug(
        "a source reads on behind the last savepoint",
        ("C11",),
        f"{_CORE}.task",
        "            self.holding = True\n",
        "            pass\n",
    ),
    Bug(
        "a drain drains nothing",
        ("C11",),
        f"{_CORE}.task",
        "[Drain()] if barrier.kind.drains and not self.at_end else []",
        "[]",
    ),
    Bug(
        "an older checkpoint completes behind the savepoint of a stop",
        ("C8", "C15"),
        f"{_COORDINATOR}.completion",
        "_abort_older(state, checkpoint) if kind.commits else",
        "_abort_older(state, checkpoint) if not kind.is_savepoint else",
    ),
    Bug(
        "one checkpoint too many is subsumed",
        ("C12",),
        f"{_CORE}.retention",
        "cut = max(len(completed) - retained, 0)",
        "cut = max(len(completed) - retained + 1, 0)",
    ),
    Bug(
        "subsumed checkpoints are never deleted",
        ("C12",),
        f"{_COORDINATOR}.completion",
        "    state, discarded = delete_checkpoints(state, subsumed)\n",
        "    discarded = ()\n",
    ),
    Bug(
        "a deletion that keeps failing is forgotten",
        ("S4", "C12"),
        f"{_COORDINATOR}.deletion",
        "others if is_last_try else _defer(others, deletion, state.job.directory)",
        "others",
    ),
    Bug(
        "what was put off outlives the job",
        ("S4", "C12"),
        f"{_COORDINATOR}.shutdown",
        "    state, deletions = delete_files(state, left)\n",
        "    deletions = ()\n",
    ),
    Bug(
        "a cancelled job loses its retained checkpoints",
        ("C12", "C13"),
        f"{_CORE}.retention",
        "    Retention.RETAIN_ON_CANCELLATION: frozenset({JobStatus.FINISHED}),\n",
        "    Retention.RETAIN_ON_CANCELLATION: frozenset(JobStatus),\n",
    ),
    Bug(
        "a named savepoint is ignored",
        ("C13", "C15"),
        f"{_CORE}.restore_decision",
        "    if restore_request.path and not is_same"
        " and not _ends_with(facts, line, restore_request):\n",
        "    if False:\n",
    ),
    Bug(
        "a stop is taken for the own stop of a job that continues from it",
        ("K4",),
        f"{_CORE}.restore_decision",
        "served == {restore_request.deployment}:\n",
        "is_same:\n",
    ),
    Bug(
        "a subtask leaves before its end",
        ("C14",),
        f"{_COORDINATOR}.final_checkpoint",
        "if kind.is_synchronous or _is_at_end(state, ack)]",
        "]",
    ),
    Bug(
        "subtasks with union state do not stay for each other",
        ("C14",),
        f"{_COORDINATOR}.final_checkpoint",
        "    leaving = frozenset(done) - _with_union_state(state, done, acks)\n",
        "    leaving = frozenset(done)\n",
    ),
    Bug(
        "the final checkpoint is never taken",
        ("C14",),
        f"{_COORDINATOR}.final_checkpoint",
        "    if not is_needed:\n",
        "    if True:\n",
    ),
    Bug(
        "a lost final notice is never repeated",
        ("C14",),
        f"{_COORDINATOR}.final_checkpoint",
        "    if not left:\n        return state, ()\n    again =",
        "    return state, ()\n    again =",
        first_seed=1_400,  # few schedules lose the last notice of a job
    ),
    Bug(
        "the oldest retained checkpoint is restored",
        ("C15",),
        f"{_COORDINATOR}.coordinator_state",
        "        newest = completed[-1]\n",
        "        newest = completed[0]\n",
    ),
    Bug(
        "what is borrowed is treated as owned",
        ("C16",),
        f"{_CORE}.restore_decision",
        "owned = ((next_index, manifest),) if restore_request.claims else ()",
        "owned = ((next_index, manifest),)",
    ),
    Bug(
        "a zombie completes after a takeover",
        ("C17",),
        f"{_COORDINATOR}",
        "            return job_log.on_taken(state, event)\n",
        "            return _on_entry_created(state, EntryCreated(event.index))\n",
    ),
    Bug(
        "a fenced driver cleans up behind itself",
        ("C17",),
        f"{_COORDINATOR}.job_log",
        "    state, dropped = drop_requests(state, state.requests.queue, reason)\n",
        "    state, dropped = drop_requests(state, state.requests.queue, reason)\n"
        "    from weir.core.coordinator.actions import DeleteFiles\n"
        "    for completed in state.checkpoints.completed:\n"
        "        paths = tuple(file.path for file in completed.manifest.files())\n"
        "        actions.append(DeleteFiles(0, paths))\n",
    ),
    Bug(
        "a job that was taken over restarts all the same",
        ("C17",),
        f"{_COORDINATOR}.failover",
        "    return state, (LookForSuccessor(state.log.index),)\n",
        "    return on_successor(state, NoSuccessorSeen(state.log.index))\n",
    ),
    Bug(
        "a restart does not wait for what is being written",
        ("C15", "C17"),
        f"{_COORDINATOR}.failover",
        "if not is_needed or restore.looking or is_writing:",
        "if not is_needed or restore.looking:",
    ),
    Bug(
        "a refusal is believed though the driver before has gone on",
        ("C17", "C15"),
        f"{_CORE}.takeover",
        "    return read == read_again\n",
        "    return True\n",
    ),
    Bug(
        "an entry in doubt is given up",
        ("C18",),
        f"{_COORDINATOR}.job_log",
        "    state = replace(state, log=replace(state.log, in_doubt=True))\n",
        "    return on_not_created(state, EntryNotCreated(event.index, 'no answer'))\n",
    ),
    Bug(
        "a manifest in doubt is taken for written",
        ("C18",),
        f"{_COORDINATOR}.completion",
        "            return state.with_retry(WriteManifest(pending.manifest)), ()\n",
        "            return on_manifest(state, ManifestWritten(event.checkpoint))\n",
    ),
    Bug(
        "an unanswered commit is taken for done",
        ("C18",),
        f"{_COORDINATOR}.transactions",
        "    if isinstance(event, CommitInDoubt):\n",
        "    if False:\n",
    ),
    Bug(
        "a live driver is replaced by a job of the same name",
        ("C17",),
        f"{_CORE}.takeover",
        "    return found is not Liveness.LIVES\n",
        "    return True\n",
    ),
    Bug(
        "a job that has finished is run again",
        ("R6",),
        f"{_CORE}.restore_decision",
        "    return _has_finished(entries) and not asks_for_more\n",
        "    return False\n",
    ),
    Bug(
        "a new driver reuses ids",
        ("C19", "C17"),
        f"{_CORE}.takeover",
        "next_id = max(reserved, restored + 1)",
        "next_id = restored + 1",
    ),
    Bug(
        "an id is used twice",
        ("C19",),
        f"{_COORDINATOR}.trigger",
        "next_id=CheckpointId(state.log.next_id + 1)",
        "next_id=CheckpointId(state.log.next_id + (state.requests.count % 7 > 0))",
    ),
    Bug(
        "commit numbers have gaps",
        ("C19",),
        f"{_CORE}.commit",
        "ledger.sequence + 1, fresh)",
        "ledger.sequence + 1 + (checkpoint % 5 == 0), fresh)",
    ),
    Bug(
        "commits are renumbered after a restore",
        ("C19",),
        f"{_CORE}.coordinator",
        "commit.restored(newest, ledger)",
        "SinkLedger(ledger.sink)",
    ),
    Bug(
        "a rollback gives commit numbers out again",
        ("C19",),
        f"{_CORE}.commit",
        "    missing = range(ledger.sequence + 1, given + 1)\n",
        "    return ledger\n    missing = range(ledger.sequence + 1, given + 1)\n",
    ),
    Bug(
        "ids run past the reservation",
        ("C19",),
        f"{_COORDINATOR}.trigger",
        "if state.log.next_id >= state.log.ids_until:",
        "if False:",
    ),
    Bug(
        "a loop is admitted",
        ("C20",),
        f"{_CORE}.graph_validation",
        "    if not loop:\n",
        "    if True:\n",
    ),
    Bug(
        "a pushy source is admitted",
        ("C20",),
        f"{_CORE}.graph_validation",
        "        if o.is_externally_induced\n",
        "        if False\n",
    ),
)

BUGS = (
    *_COORDINATOR_BUGS,
    *SLOT_BUGS,
    *SHELL_BUGS,
    *MERGED_FILE_BUGS,
    *CHANGELOG_BUGS,
    *NATIVE_STATE_BUGS,
)


def bug_named(name: str) -> Bug:
    return next(bug for bug in BUGS if bug.name == name)
