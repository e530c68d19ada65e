"""The list of planted bugs: what a tired engineer could write, one passage each.

Every decision of the specification's lines C and A has at least one. They are not meant to be
subtle or clumsy, only plausible; the simulator has to catch each of them by its consequences, and a
test that names the line has to fail.
"""

from simulation.sabotage import Bug
from simulation.shell_bugs import SHELL_BUGS
from simulation.slot_bugs import SLOT_BUGS

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
        f"{_COORDINATOR}.triggering",
        "    state = replace(state, clock=Idle())\n    state, aborted",
        "    state, aborted",
    ),
    Bug(
        "queued requests survive the scheduler's stop",
        ("C3",),
        f"{_COORDINATOR}.triggering",
        "drop_requests(state, state.queue, Reason.CHECKPOINT_COORDINATOR_SUSPEND)",
        "drop_requests(state, (), Reason.CHECKPOINT_COORDINATOR_SUSPEND)",
    ),
    Bug(
        "a split is assigned between the enumerator's snapshot and the trigger",
        ("C4",),
        f"{_COORDINATOR}.triggering",
        "if isinstance(pending, Preparing) and event.operator not in pending.operators:",
        "if False:",
    ),
    Bug(
        "held splits are sent before the trigger",
        ("C4",),
        f"{_COORDINATOR}.triggering",
        "        Trigger(_barrier(state, ticket), targets(state, ticket.plan.trigger)),\n"
        "        *held,\n",
        "        *held,\n"
        "        Trigger(_barrier(state, ticket), targets(state, ticket.plan.trigger)),\n",
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
        f"{_CORE}.plan",
        "        topology.sender(channel) in finished\n",
        "        False\n",
    ),
    Bug(
        "a checkpoint starts without all subtasks running",
        ("C4",),
        f"{_CORE}.plan",
        "    if missing:\n",
        "    if False:\n",
    ),
    Bug(
        "more checkpoints run than may",
        ("C5", "C6"),
        f"{_CORE}.requests",
        "traffic.in_flight >= traffic.max_concurrent and not first.forced",
        "False",
    ),
    Bug(
        "the queue has no end",
        ("C5",),
        f"{_CORE}.requests",
        "return Enqueued(longer[:limit], longer[limit:])",
        "return Enqueued(longer)",
    ),
    Bug(
        "a dropped request is never answered",
        ("C5",),
        f"{_COORDINATOR}.aborting",
        "        actions += _answer(request, reason, reason.value)\n",
        "",
    ),
    Bug(
        "the pause is forgotten",
        ("C5", "C6"),
        f"{_CORE}.requests",
        "if first.is_periodic and not first.forced and traffic.now < traffic.pause_over_at:",
        "if False:",
    ),
    Bug(
        "nothing ever expires",
        ("C6", "C9"),
        f"{_COORDINATOR}.triggering",
        "isinstance(pending, Abortable) and pending.ticket.deadline <= state.now",
        "False",
    ),
    Bug(
        "a late ack deletes a savepoint",
        ("C7", "C12"),
        f"{_COORDINATOR}.completing",
        "    if event.checkpoint in state.savepoints:\n        return state, ()\n",
        "",
    ),
    Bug(
        "a repeated ack deletes what its checkpoint owns",
        ("C7",),
        f"{_COORDINATOR}.completing",
        "clean(state, retention.unreferenced(paths, owned))",
        "clean(state, tuple(paths))",
    ),
    Bug(
        "the state of useless acks stays",
        ("C7",),
        f"{_COORDINATOR}.completing",
        "    return clean(state, retention.unreferenced(paths, owned))\n",
        "    return state, ()\n",
    ),
    Bug(
        "an ack counts twice in the registry",
        ("C7",),
        f"{_COORDINATOR}.completing",
        "shared=state.shared.take(shared))",
        "shared=state.shared.take([*shared] * 2))",
    ),
    Bug(
        "commit before completion",
        ("C8",),
        f"{_COORDINATOR}.completing",
        "            return write_entry(state.with_pending(logging), _entry(state, logging))\n",
        "            early = replace(state, ledgers=_covered(state, event.checkpoint, pending))\n"
        "            entry = _entry(state, logging)\n"
        "            after, said = write_entry(state.with_pending(logging), entry)\n"
        "            return after, (*said, *commits(early, state.ledgers))\n",
    ),
    Bug(
        "older checkpoints go before the entry exists",
        ("C8",),
        f"{_COORDINATOR}.completing",
        "            return write_entry(state.with_pending(logging), _entry(state, logging))\n",
        "            gone, deleted = discard(state, state.completed)\n"
        "            gone = replace(gone, completed=())\n"
        "            after, said = write_entry(gone.with_pending(logging), _entry(gone, logging))\n"
        "            return after, (*said, *deleted)\n",
    ),
    Bug(
        "two manifests are written at once",
        ("C8",),
        f"{_COORDINATOR}.completing",
        "    if state.is_writing:\n        return state, ()\n    for pending",
        "    for pending",
    ),
    Bug(
        "aborted checkpoints leave their files",
        ("C9",),
        f"{_COORDINATOR}.aborting",
        "clean(state, (*own, *freed, *manifest))",
        "clean(state, ())",
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
        f"{_COORDINATOR}.state",
        "Abortable = Preparing | Collecting | Collected\n",
        "Abortable = Preparing | Collecting | Collected | Persisting | Logging\n",
    ),
    Bug(
        "a failed stop leaves the sources waiting",
        ("C9", "C11"),
        f"{_COORDINATOR}.aborting",
        "sources_wait and reason not in WHOLE_JOB_GOES_DOWN",
        "False",
    ),
    Bug(
        "an abort names nobody",
        ("C10",),
        f"{_COORDINATOR}.diagnosis",
        '    return f"{said}; {_slowest(pending, now)}"',
        "    return said",
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
        "one checkpoint too many is subsumed",
        ("C12",),
        f"{_CORE}.retention",
        "cut = max(len(completed) - retained, 0)",
        "cut = max(len(completed) - retained + 1, 0)",
    ),
    Bug(
        "subsumed checkpoints are never deleted",
        ("C12",),
        f"{_COORDINATOR}.completing",
        "    state, discarded = discard(state, subsumed)\n",
        "    discarded = ()\n",
    ),
    Bug(
        "a deletion that keeps failing is forgotten",
        ("S4", "C12"),
        f"{_COORDINATOR}.closing",
        "(state if isinstance(state.life, Closed) else put_off(state, cleaning))",
        "state",
    ),
    Bug(
        "what was put off outlives the job",
        ("S4", "C12"),
        f"{_COORDINATOR}.closing",
        "    state, cleaning = clean(state, left)\n",
        "    cleaning = ()\n",
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
        f"{_CORE}.recovery",
        "    if wish.path and not is_same and not _ends_with(facts, line, wish):\n",
        "    if False:\n",
    ),
    Bug(
        "a stop is taken for one's own by whoever goes on from it",
        ("K4",),
        f"{_CORE}.recovery",
        "_served_since(facts, newest.index) == {wish.deployment}:\n",
        "is_same:\n",
    ),
    Bug(
        "a subtask leaves before its end",
        ("C14",),
        f"{_COORDINATOR}.completing",
        "if kind.is_synchronous or _is_at_end(state, ack)]",
        "]",
    ),
    Bug(
        "subtasks with union state do not stay for each other",
        ("C14",),
        f"{_COORDINATOR}.completing",
        "    leaving = frozenset(done) - _halves(state, done, acks)\n",
        "    leaving = frozenset(done)\n",
    ),
    Bug(
        "the final checkpoint is never taken",
        ("C14",),
        f"{_COORDINATOR}.triggering",
        "    if not wanted:\n",
        "    if True:\n",
    ),
    Bug(
        "a lost farewell is never repeated",
        ("C14",),
        f"{_COORDINATOR}.completing",
        "    if not left:\n        return state, ()\n    state = replace(state, farewell",
        "    return state, ()\n    state = replace(state, farewell",
    ),
    Bug(
        "the oldest retained checkpoint is restored",
        ("C15",),
        f"{_COORDINATOR}.state",
        "        newest = self.completed[-1]\n",
        "        newest = self.completed[0]\n",
    ),
    Bug(
        "what is borrowed is treated as owned",
        ("C16",),
        f"{_CORE}.recovery",
        "owned = ((next_index, manifest),) if wish.claims else ()",
        "owned = ((next_index, manifest),)",
    ),
    Bug(
        "a zombie completes after a takeover",
        ("C17",),
        f"{_COORDINATOR}",
        "            return logbook.on_taken(state, event)\n",
        "            return _on_entry_created(state, EntryCreated(event.index))\n",
    ),
    Bug(
        "a fenced driver cleans up behind itself",
        ("C17",),
        f"{_COORDINATOR}.logbook",
        "    state, dropped = drop_requests(state, state.queue, reason)\n",
        "    state, dropped = drop_requests(state, state.queue, reason)\n"
        "    from weir.core.coordinator.actions import DeleteFiles\n"
        "    for completed in state.completed:\n"
        "        paths = tuple(file.path for file in completed.manifest.files())\n"
        "        actions.append(DeleteFiles(0, paths))\n",
    ),
    Bug(
        "a job that was taken over restarts all the same",
        ("C17",),
        f"{_COORDINATOR}.restarting",
        "    return replace(state, looking=True), (LookForSuccessor(state.journal.index),)\n",
        "    return on_successor(\n"
        "        replace(state, looking=True), NoSuccessorSeen(state.journal.index)\n"
        "    )\n",
    ),
    Bug(
        "a restart does not wait for what is being written",
        ("C15", "C17"),
        f"{_COORDINATOR}.restarting",
        "if not is_needed or state.looking or state.is_writing or state.journal.writing:",
        "if not is_needed or state.looking:",
    ),
    Bug(
        "an entry in doubt is given up",
        ("C18",),
        f"{_COORDINATOR}.logbook",
        "    state = replace(state, journal=replace(state.journal, in_doubt=True))\n",
        "    return on_not_created(state, EntryNotCreated(event.index, 'no answer'))\n",
    ),
    Bug(
        "a manifest in doubt is taken for written",
        ("C18",),
        f"{_COORDINATOR}.completing",
        "            return retry_later(state, WriteManifest(pending.manifest)), ()\n",
        "            return on_manifest(state, ManifestWritten(event.checkpoint))\n",
    ),
    Bug(
        "an unanswered commit is taken for done",
        ("C18",),
        f"{_COORDINATOR}.completing",
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
        f"{_CORE}.recovery",
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
        f"{_COORDINATOR}.triggering",
        "next_id=CheckpointId(state.next_id + 1),",
        "next_id=CheckpointId(state.next_id + (state.asked % 7 > 0)),",
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
        f"{_COORDINATOR}.triggering",
        "if state.next_id >= state.ids_until:",
        "if False:",
    ),
    Bug(
        "a loop is admitted",
        ("C20",),
        f"{_CORE}.admission",
        "    if not loop:\n",
        "    if True:\n",
    ),
    Bug(
        "a pushy source is admitted",
        ("C20",),
        f"{_CORE}.admission",
        "        if o.is_externally_induced\n",
        "        if False\n",
    ),
)

BUGS = (*_COORDINATOR_BUGS, *SLOT_BUGS, *SHELL_BUGS)


def bug_named(name: str) -> Bug:
    return next(bug for bug in BUGS if bug.name == name)
