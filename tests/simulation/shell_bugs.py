"""Planted bugs around the core: in state, storage, connectors, and what no schedule can show.

The simulator runs the core and the slot's decisions, so most of these are for the tests beside the
sabotaged module; where the simulator runs that too, a schedule must notice as well. One passage
each, as plausible as the others.
"""

from simulation.source_patch import Bug

_STORAGE = "tests/weir/storage"
_CORE = "tests/weir/core"
_STATE = "tests/weir/state"
_DRIVER = "tests/weir/driver"
_SLOT = "tests/weir/slot"
_PYSPARK = "tests/weir/connectors/pyspark"

SHELL_BUGS = (
    # C18: what an error of the file system leaves open
    Bug(
        "an error after the link is taken for one before it",
        ("C18",),
        "weir.storage.file_store",
        "    if problem.errno in _BEFORE_THE_NAME:\n",
        "    if True:\n",
        (f"{_STORAGE}/test_file_store.py",),
        is_scheduled=True,
    ),
    Bug(
        "an error without a known meaning is taken for a refusal",
        ("C18",),
        "weir.driver.storage_actions",
        "SURELY_NOT = (WriteFailed, JobRejected)\n",
        "SURELY_NOT = (Exception,)\n",
        (f"{_DRIVER}/test_storage_actions.py",),
        is_scheduled=True,
    ),
    # C6, R2: time
    Bug(
        "intervals and timeouts are measured by the wall clock",
        ("C6", "R2"),
        "weir.wire.clocks",
        "        return Millis(self._origin + self._monotonic())\n",
        "        return self.wall()\n",
        (f"{_DRIVER}/test_loop.py", f"{_DRIVER}/test_loop_clock.py"),
        is_scheduled=True,
    ),
    Bug(
        "a source that rests is woken by the wall clock",
        ("A11",),
        "weir.slot.mailbox",
        "        for subtask in [s for s, due in self._wakeups.items() if due <= now]:\n",
        "        for subtask in [s for s, due in self._wakeups.items() if due <= wall]:\n",
        (f"{_SLOT}/test_mailbox.py",),
    ),
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
        "if ours and int(ours[1]) < owner.checkpoint and ours[2] not in names:",
        "if False:",
        (f"{_STORAGE}/test_local_copies.py",),
    ),
    Bug(
        "a copy that newer state builds on is cleared away",
        ("S13",),
        "weir.storage.local_copies",
        "if ours and int(ours[1]) < owner.checkpoint and ours[2] not in names:",
        "if ours and int(ours[1]) < owner.checkpoint:",
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
        "weir.core.execution_graph",
        "if index not in found or found[index].checkpoint < checkpoint:",
        "if True:",
        (f"{_CORE}/test_attempt.py",),
    ),
    # R2: the same failure again and again
    Bug(
        "a job that fails in the same way for ever is restarted for ever",
        ("R2",),
        "weir.core.restarts",
        "    if kind is None or not kind.error:\n",
        "    if True:\n",
        (f"{_CORE}/test_restarts.py",),
    ),
    Bug(
        "a service that is away for long ends the job",
        ("R2", "R1"),
        "weir.core.restarts",
        "    if kind is None or not kind.error:\n",
        "    if kind is None:\n",
        (f"{_CORE}/test_restarts.py",),
    ),
    Bug(
        "a checkpoint forgives an enumerator that always raises",
        ("R2",),
        "weir.core.restarts",
        "            return self.in_driver\n",
        "            return False\n",
        (f"{_CORE}/test_restarts.py",),
    ),
    Bug(
        "an error of the network is taken for one of the program",
        ("R1", "R2"),
        "weir.ports.user_code_errors",
        "        if isinstance(raised, OSError) and not isinstance(raised, _OF_THE_PROGRAM):\n",
        "        if False:\n",
        ("tests/weir/ports/test_user_code_errors.py",),
    ),
    # C14: the end of data
    Bug(
        "a checkpoint waits for a subtask that finished while it was prepared",
        ("C14",),
        "weir.core.coordinator.trigger",
        "    if gone:\n",
        "    if False:\n",
        (f"{_CORE}/coordinator/test_trigger.py",),
    ),
    # R8
    Bug(
        "a stuck job is left alone",
        ("R8",),
        "weir.core.stall_detector",
        "return self.deadline is not None and self.deadline <= now",
        "return False",
        (f"{_CORE}/test_job_master.py",),
    ),
    Bug(
        "a slow operator is sent batches as long as a quick one gets",
        ("R7",),
        "weir.slot.mailbox",
        "            runner.demand.asks(event.channel, event.rows, edge.kind)\n",
        "            pass\n",
        (f"{_SLOT}/test_bounds.py",),
    ),
    Bug(
        "the receivers of a broadcast edge share its rows out",
        ("R7",),
        "weir.slot.demand",
        "        shares = 1 if kind in NOT_SPREADING else len(asked)\n",
        "        shares = len(asked)\n",
        (f"{_SLOT}/test_demand.py",),
    ),
    Bug(
        "a sender goes by what its operator emitted long ago",
        ("R7",),
        "weir.slot.demand",
        "            kept = min(FORGETTING, MOST_HISTORY * taken / self._taken)"
        " if self._taken else 0.0\n",
        "            kept = 1.0\n",
        (f"{_SLOT}/test_demand.py",),
    ),
    Bug(
        "state on disk counts as memory while it is uploaded",
        ("R7",),
        "weir.slot.snapshot_uploads",
        "self._state_bytes if captured.is_in_memory else 0)\n",
        "self._state_bytes)\n",
        (f"{_SLOT}/test_snapshot_uploads.py",),
    ),
    Bug(
        "an operator in between hides how slow the one behind it is",
        ("R7",),
        "weir.slot.mailbox",
        "                in_a_turn = runner.demand.limit(runner.budget.rows)\n",
        "                in_a_turn = runner.budget.rows\n",
        (f"{_SLOT}/test_bounds.py",),
    ),
    # S4: incremental snapshots
    Bug(
        "what changed in the last interval alone goes up",
        ("S4",),
        "weir.state.memory.change_history",
        "                return self.intervals[position:]\n",
        "                return self.intervals[-1:]\n",
        (f"{_STATE}/test_change_history.py",),
    ),
    Bug(
        "a layer does not name the aggregates that were removed",
        ("S4",),
        "weir.state.memory.table_snapshot",
        "            self._history.removed(table, self._table.size)\n",
        "            self._history.removed(table.slice(0, 0), self._table.size)\n",
        (f"{_STATE}/test_removed_keys.py",),
    ),
    Bug(
        "a row number goes to another key while a capture still reads it",
        ("S3",),
        "weir.state.memory.free_rows",
        "        while self._waiting and self._waiting[0][0] < oldest:\n",
        "        while self._waiting:\n",
        (f"{_STATE}/test_removed_keys.py",),
    ),
    Bug(
        "a removed key comes again with its old aggregates",
        ("S1",),
        "weir.state.memory.aggregate_table",
        "            array[row_numbers] = one.initial\n",
        "            pass\n",
        (f"{_STATE}/test_removed_keys.py",),
    ),
    Bug(
        "a key that was removed comes back from an older layer",
        ("S4",),
        "weir.state.layer_merge",
        "    return table.filter(pc.invert(table.column(REMOVED.name)))\n",
        "    return table\n",
        (f"{_PYSPARK}/test_processor_layers.py",),
    ),
    Bug(
        "a rescaled subtask adds to files of which others have a part",
        ("S4", "S5", "S11"),
        "weir.slot.subtask_deployment",
        "        if not self._has_all_of(state_assignment):\n            return\n",
        "",
        ("tests/integration/test_rescaled_increments.py",),
    ),
    Bug(
        "an older layer hides a newer one",
        ("S4",),
        "weir.state.layer_merge",
        "    for state in reversed(files):\n",
        "    for state in files:\n",
        (f"{_PYSPARK}/test_processor_layers.py",),
    ),
    Bug(
        "layers grow without end",
        ("S4",),
        "weir.slot.layers",
        "if not layers or len(layers) >= MOST_LAYERS:",
        "if not layers:",
        (f"{_SLOT}/test_layers.py",),
    ),
    Bug(
        "the collector takes what a savepoint refers to",
        ("S4",),
        "weir.storage.garbage_collection",
        "        yield from (file.path for file in manifest.files())\n",
        "        yield from ()\n",
        (f"{_STORAGE}/test_garbage_collection.py",),
    ),
    # S12: the schemas of state
    Bug(
        "every integer fits into a double",
        ("S12",),
        "weir.state.schema_evolution",
        "return _EXACT_BITS.get(kind, 0) >= bits",
        "return kind in _EXACT_BITS",
        (f"{_STATE}/test_schema_evolution.py",),
    ),
    Bug(
        "a new field need not be nullable",
        ("S12",),
        "weir.state.schema_evolution",
        '        elif not field.nullable:\n            yield f"{_shown(name)} is new and',
        '        elif False:\n            yield f"{_shown(name)} is new and',
        (f"{_STATE}/test_schema_evolution.py",),
    ),
    # R5, C19: PySpark's readers and writers
    Bug(
        "a commit in doubt gets a new number",
        ("C19",),
        "weir.connectors.pyspark.stream_writer",
        'blaming_user_code(self._sink.name, "commit", sequence - 1)',
        'blaming_user_code(self._sink.name, "commit", sequence)',
        (f"{_PYSPARK}/test_stream_writer.py",),
    ),
    Bug(
        "a commit that was written down is made again",
        ("R5",),
        "weir.connectors.pyspark.stream_writer",
        "if self._records.find(sequence, names) is None:",
        "if True:",
        (f"{_PYSPARK}/test_stream_writer.py",),
    ),
    Bug(
        "a replay that differs is taken for the same",
        ("R5",),
        "weir.connectors.pyspark.split_reader",
        "if not self._is_behind and self._reached != self._begin:",
        "if False:",
        (f"{_PYSPARK}/test_stream_reader.py",),
    ),
    # C18, R4: whatever is raised is reported
    Bug(
        "an upload that panics is neither acked nor declined",
        ("C18",),
        "weir.slot.snapshot_writer",
        "BaseException as problem:  # noqa: BLE001 - a panic of native code declines too\n"
        "            return self._failed(upload, Reason.CHECKPOINT_ASYNC_EXCEPTION, problem)\n",
        "Exception as problem:\n"
        "            return self._failed(upload, Reason.CHECKPOINT_ASYNC_EXCEPTION, problem)\n",
        (f"{_SLOT}/test_snapshot_uploads.py",),
    ),
    Bug(
        "a panic ends the slot without a reason",
        ("R4",),
        "weir.slot.subtask_runner",
        "BaseException as problem:  # a panic of native code and sys.exit too\n",
        "Exception as problem:\n",
        (f"{_SLOT}/test_mailbox.py",),
    ),
    # R5: a directory belongs to one job
    Bug(
        "a job commits and deletes where another one has taken over",
        ("R5", "C17"),
        "weir.connectors.file_sink",
        "            self._directory.check(self._owner)\n",
        "            pass\n",
        ("tests/weir/connectors/test_directory_owner.py",),
    ),
    # A11, R7: turns and bounds
    Bug(
        "a storm of timers is one turn",
        ("A11",),
        "weir.slot.subtask_runner",
        "if self.timer() - began > TURN_SECONDS or not self.has_room:",
        "if False:",
        (f"{_SLOT}/test_timer_storms.py", f"{_SLOT}/test_bounds.py"),
    ),
    Bug(
        "a channel takes batches of any length",
        ("R7",),
        "weir.exchange.batch_sizes",
        "if batch.num_rows <= 1 or size_of(batch) <= BATCH_BYTES:",
        "if True:",
        (f"{_SLOT}/test_bounds.py", "tests/weir/exchange/test_batch_sizes.py"),
    ),
    Bug(
        "what is recorded has no bound",
        ("R7",),
        "weir.slot.subtask_runner",
        "        if self.task.is_recording(grant.channel):\n",
        "        if False:\n",
        (f"{_SLOT}/test_bounds.py",),
    ),
    # S11: operator state
    Bug(
        "a list is kept whole, so that one subtask inherits it",
        ("S11",),
        "weir.slot.operator_state",
        "count = min(rows, most_items if is_shared_out else 1)",
        "count = min(rows, 1)",
        (f"{_SLOT}/test_rescaled_functions.py",),
    ),
    # D4: event time
    Bug(
        "an exhausted split is forgotten before its time counts",
        ("D4",),
        "weir.slot.source_operator",
        "                self._exhausted = max(self._exhausted, current.latest)\n",
        "",
        (f"{_SLOT}/test_source_operator.py", f"{_SLOT}/test_watermarks.py"),
    ),
    Bug(
        "the time of exhausted splits is in no checkpoint",
        ("D4", "A10"),
        "weir.slot.source_operator",
        "        self._restore_time(restored_state.lists.get(EVENT_TIME, ()))\n",
        "",
        (f"{_SLOT}/test_source_operator.py", f"{_SLOT}/test_watermarks.py"),
    ),
    Bug(
        "a reader is idle while its request is under way",
        ("D4",),
        "weir.slot.source_operator",
        "return self._knows_of_none and not self._open",
        "return not self._open",
        (f"{_SLOT}/test_source_operator.py",),
    ),
    Bug(
        "time turns back when an idle channel goes on",
        ("D4",),
        "weir.slot.event_time",
        "        self.now = max(self.now, self._least(self._promised))\n",
        "        self.now = self._least(self._promised)\n",
        (f"{_SLOT}/test_event_time.py",),
        is_scheduled=True,
    ),
    # A9, R1: what a slot does around a task
    Bug(
        "buffered rows leave behind the barrier",
        ("A9",),
        "weir.slot.subtask_runner",
        "            case Prepare():\n                self._flush()\n",
        "            case Prepare():\n                pass\n",
        (f"{_SLOT}/test_subtask_runner.py",),
        is_scheduled=True,
    ),
    Bug(
        "what arrives before its receiver is ready is dropped",
        ("R1",),
        "weir.slot.slot_exchange",
        "        if run >= self._runs.get(receiver, (0, 0)):\n",
        "        if False:\n",
        (f"{_SLOT}/test_slot_exchange.py",),
        is_scheduled=True,
    ),
)
