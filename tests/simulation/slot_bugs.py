"""Planted bugs of the subtask's side: alignment, queues, turns, restore.

The same rules as in the other half of the list: one passage each, plausible, caught by what follows
from it.
"""

from simulation.source_patch import Bug

_CORE = "weir.core"

SLOT_BUGS = (
    Bug(
        "a barrier does not keep its place",
        ("A1",),
        f"{_CORE}.task",
        "            return self._overtaking(channel, element, now)\n",
        "            return self._overtaking(channel, element, now)\n"
        "        if isinstance(element, Barrier):\n"
        "            return self._barrier(channel, element, now)\n",
    ),
    Bug(
        "a channel that delivered is read on",
        ("A2",),
        f"{_CORE}.alignment",
        "            self.blocked.add(channel)\n",
        "            pass\n",
    ),
    Bug(
        "one missing barrier does not matter",
        ("A2",),
        f"{_CORE}.alignment",
        "        if self.barrier is None or not all(\n"
        "            channel in self.delivered or channel in self.ended "
        "for channel in self.channels\n"
        "        ):\n",
        "        missing = [\n"
        "            c for c in self.channels if c not in self.delivered and c not in self.ended\n"
        "        ]\n"
        "        if self.barrier is None or len(missing) > 1:\n",
    ),
    Bug(
        "at-least-once does not wait for the last barrier",
        ("A3",),
        f"{_CORE}.alignment",
        "            if self._is_complete(delivered):\n",
        "            if delivered:\n",
    ),
    Bug(
        "an overtaken input buffer is dropped",
        ("A4",),
        f"{_CORE}.task",
        "            part.recording[channel] = batches\n",
        "            part.recording[channel] = batches[1:]\n",
    ),
    Bug(
        "what arrives before the late barrier is not recorded",
        ("A4",),
        f"{_CORE}.task",
        "            part.recording[channel].append(element)\n",
        "            pass\n",
    ),
    Bug(
        "the channel of the first barrier is not recorded",
        ("A4",),
        f"{_CORE}.task",
        "        orders = self._act_on(self.aligner.announced(barrier, now), now)\n",
        "        verdicts = self.aligner.announced(barrier, now)\n"
        "        self.aligner.marker_arrived(channel)\n"
        "        orders = self._act_on(verdicts, now)\n",
    ),
    Bug(
        "overtaken output is not saved",
        ("A4",),
        f"{_CORE}.task",
        "                part.overtaken[channel] = outbox.put_first(barrier)\n",
        "                outbox.put_first(barrier)\n",
    ),
    Bug(
        "a barrier that jumps the output queue forgets what it jumped",
        ("A5",),
        f"{_CORE}.task",
        "                part.overtaken[channel] = promoted[1]\n",
        "                pass\n",
    ),
    Bug(
        "alignment that times out saves nothing",
        ("A5",),
        f"{_CORE}.alignment",
        "        return [Snapshot(self.barrier, overtaking=True, since=self.since)]\n",
        "        kept = not self.barrier.may_time_out\n"
        "        return [Snapshot(self.barrier, overtaking=kept, since=self.since)]\n",
    ),
    Bug(
        "savepoints overtake too",
        ("A6",),
        f"{_CORE}.coordinator.trigger",
        "    elif policy.unaligned and kind.is_savepoint:\n",
        "    elif False:\n",
    ),
    Bug(
        "an ended channel is waited for",
        ("A7",),
        f"{_CORE}.alignment",
        "            channel in self.delivered or channel in self.ended for channel",
        "            channel in self.delivered for channel",
    ),
    Bug(
        "a newer barrier joins the older alignment",
        ("A7", "A8"),
        f"{_CORE}.alignment",
        "        self._clear()\n        self.barrier, self.since, self.last",
        "        self.barrier, self.since, self.last",
    ),
    Bug(
        "an aborted checkpoint's barrier starts an alignment",
        ("A7", "A9"),
        f"{_CORE}.task",
        "        if checkpoint > self.aligner.last:\n            self.aborted.add(checkpoint)\n",
        "",
    ),
    Bug(
        "a cancel marker releases nothing",
        ("A7",),
        f"{_CORE}.task",
        "                return self._act_on(self.aligner.cancel(checkpoint, reason), now)\n"
        "            case EndOfInput():",
        "                return []\n            case EndOfInput():",
    ),
    Bug(
        "concurrent checkpoints share one tally",
        ("A8",),
        f"{_CORE}.alignment",
        "(barrier, now, set()))[2].add(channel)\n",
        "(barrier, now, set()))\n"
        "        for _, _, delivered in self.waiting.values():\n"
        "            delivered.add(channel)\n",
    ),
    Bug(
        "an old barrier is news again",
        ("A9", "A7"),
        f"{_CORE}.alignment",
        "    def _is_news(self, barrier: Barrier) -> bool:\n"
        "        return barrier.checkpoint > self.last\n\n    def _start",
        "    def _is_news(self, barrier: Barrier) -> bool:\n"
        "        return self.barrier is None or barrier.checkpoint > self.last\n\n    def _start",
    ),
    Bug(
        "an ack does not wait for overtaken input",
        ("A9", "A4"),
        f"{_CORE}.task",
        "if part.snapshot is None or not part.inputs_done or part.outputs_waiting:",
        "if part.snapshot is None or part.outputs_waiting:",
    ),
    Bug(
        "an ack does not wait for overtaken output",
        ("A9", "A5"),
        f"{_CORE}.task",
        "if part.snapshot is None or not part.inputs_done or part.outputs_waiting:",
        "if part.snapshot is None or not part.inputs_done:",
    ),
    Bug(
        "in-flight rows go to every new subtask",
        ("A10",),
        f"{_CORE}.rescale",
        "(index, None if groups == old else groups) for index, groups in _owners(old, past)",
        "(index, None) for index, groups in _owners(old, past)",
    ),
    Bug(
        "broadcast state and its in-flight rows come from two subtasks",
        ("A10",),
        f"{_CORE}.rescale",
        "            return [(index, None) for index in past.followers.get(receiver, ())]\n",
        "            return [(i, None) for i in range(past.parallelism) if receiver == 0]\n",
    ),
    Bug(
        "a watermark restarts at the highest",
        ("A10",),
        f"{_CORE}.rescale",
        "lowest[edge] = min(watermark, lowest.get(edge, watermark))",
        "lowest[edge] = max(watermark, lowest.get(edge, watermark))",
    ),
    Bug(
        "overtaken output is replayed before overtaken input",
        ("A10",),
        f"{_CORE}.rescale",
        "handle.side is Side.OUTPUT\n",
        "handle.side is Side.INPUT\n",
    ),
    Bug(
        "new rows are processed before recovered ones",
        ("A10",),
        f"{_CORE}.scheduler",
        "            if recovering and channel.sender != RECOVERED:\n                continue\n",
        "",
    ),
    Bug(
        "a barrier needs credit",
        ("A11",),
        f"{_CORE}.channels",
        "            if is_batch(self.queue[0]):\n                if not self.credit:\n"
        "                    break\n",
        "            if not self.credit and not isinstance(self.queue[0], EndOfInput):\n"
        "                break\n            if is_batch(self.queue[0]):\n",
    ),
    Bug(
        "control waits for room in the output",
        ("A11",),
        f"{_CORE}.scheduler",
        "            if isinstance(inbox.queue[0], CONTROL):\n",
        "            has_room = task.has_room(self.output_limit)\n"
        "            if isinstance(inbox.queue[0], CONTROL) and has_room:\n",
    ),
    Bug(
        "the rest of a cut batch is forgotten",
        ("A11",),
        f"{_CORE}.scheduler",
        "            task.inboxes[turn.channel].put_back(batch)\n",
        "            del batch\n",
    ),
    # state and sources
    Bug(
        "an increment builds on a checkpoint of unknown fate",
        ("S4",),
        f"{_CORE}.incremental_snapshots",
        "        return self.completed.get(named, {})\n",
        "        newest = max(self.taken, default=named)\n"
        "        return {**self.completed.get(named, {}), **self.taken.get(newest, {})}\n",
    ),
    Bug(
        "a base is not held while it is built on",
        ("S4",),
        f"{_CORE}.coordinator.trigger",
        "tuple(file.path for file in newest.manifest.files() if file.shared)\n",
        "()\n",
        first_seed=3_000,  # about one schedule in five hundred comes to the order that it takes
    ),
    Bug(
        "splits of a reset reader are lost",
        ("R5", "C4"),
        f"{_CORE}.enumerator",
        "free = tuple(sorted((*self.free, *(a.split for a in lost))))",
        "free = self.free",
    ),
    Bug(
        "a region restarts alone after its slot took others down",
        ("R4",),
        f"{_CORE}.attempt",
        "    failure = Failure(graph.hosted_by(event.slot), why, event.draw)\n",
        "    failure = Failure(graph.hosted_by(event.slot)[:1], why, event.draw)\n",
    ),
    Bug(
        "a key group has two owners",
        ("S11",),
        f"{_CORE}.key_groups",
        "((index + 1) * max_parallelism - 1) // parallelism)",
        "((index + 1) * max_parallelism) // parallelism)",
    ),
)
