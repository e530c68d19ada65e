"""Histories of a changelog under aborts, kills and materializations, against a dictionary.

The coordinator of these histories does what the real one does with files: it deletes what an
aborted checkpoint alone refers to, as soon as it aborts, and what no retained checkpoint refers to.
"""

import pytest

from random_seed import dice
from weir.core.changelog import (
    MOST_SEGMENTS,
    START,
    Changelog,
    ChangelogPolicy,
    Cut,
    Position,
    Segment,
    files_of,
    size_of,
)
from weir.core.ids import NO_CHECKPOINT, CheckpointId, Millis
from weir.core.snapshots import StateFile

STATE = "counts"
KEYS = 60
CHECKPOINTS = 500
POLICY = ChangelogPolicy(materialization_interval_ms=400, preemptive_bytes=40)


class Job:
    """One subtask, its coordinator and the files of both."""

    def __init__(self, rng):
        self.rng = rng
        self.now = 0
        self.values = {}
        self.changed = {}
        """The position before which each key changed last."""
        self.files = {}
        self.made = 0
        self.completed = []
        """The retained checkpoints: their number, files and values."""
        self.pending = {}
        self.checkpoint = 0
        self.under_way = []
        self.longest = 0
        self.log = Changelog(POLICY)
        self.log.begun()
        self.position = START

    # -- the subtask

    def work(self):
        self.now += self.rng.randint(1, 5)
        for _ in range(self.rng.randint(0, 8)):
            key = self.rng.randrange(KEYS)
            self.changed[key] = self.position + 1
            if self.rng.random() < 0.2:
                self.values.pop(key, None)
            else:
                self.values[key] = self.rng.random()

    def cut(self):
        self.position = Position(self.position + 1)
        return self.position, dict(self.values), dict(self.changed)

    def expect_known(self, since):
        assert since is None or since >= self.log.oldest_position(), "the backend has forgotten it"

    def write(self, since, capture, *, weight=1, merged=False):
        """A segment as the backend would write it: absolute values, None where a key is gone."""
        upto, values, changed = capture
        if since is None:
            content = dict(values)
        else:
            content = {k: values.get(k) for k, at in changed.items() if since < at <= upto}
        self.made += 1
        path = f"{self.made}:{since}-{upto}"
        self.files[path] = (since is None, content)
        file = StateFile(path, len(content) + 1, shared=True)
        return Segment(since, upto, {STATE: (file,)}, weight=weight, is_merged=merged)

    def delete(self, paths):
        for path in paths:
            del self.files[path]

    def between(self):
        """What goes up without a checkpoint; it ends some time later, or fails."""
        if self.log.wants_materialization(Millis(self.now)):
            self.log.begin_materialization(Millis(self.now))
            self.under_way.append((None, self.cut(), self.log))
        elif self.log.wants_segment(self.rng.randrange(80)):
            since = self.log.begin_segment()
            self.expect_known(since)
            self.under_way.append((since, self.cut(), self.log))
        if self.under_way and self.rng.random() < 0.5:
            self.end_one()

    def end_one(self):
        since, capture, log = self.under_way.pop(self.rng.randrange(len(self.under_way)))
        end = log.materialized if since is None else log.logged
        made = None if self.rng.random() < 0.2 else self.write(since, capture)
        self.delete(end(made))

    # -- the coordinator

    def begin_checkpoint(self):
        self.checkpoint += 1
        number = CheckpointId(self.checkpoint)
        base = self.completed[-1][0] if self.completed else NO_CHECKPOINT
        capture = self.cut()
        merged = self.rng.random() < 0.3
        plan = self.log.plan(number, base, Cut(capture[0]), is_full=self.rng.random() < 0.02)
        self.expect_known(plan.since)
        tail = self.write(plan.since, capture, weight=plan.weight, merged=merged)
        chain = self.log.stored(number, tail)
        self.longest = max(self.longest, size_of(chain).segments)
        self.pending[number] = (chain, dict(self.values), tail if merged else None)

    def end_checkpoint(self, number):
        chain, values, merged = self.pending.pop(number)
        fate = self.rng.random()
        if fate < 0.15:
            self.delete(self.log.given_up(number))
            if merged is not None:
                self.delete(merged.paths)
            return
        self.log.acked(number)
        if fate < 0.3:
            held = {path for known in self.completed for path in known[1]}
            others = {
                f.path for other, _, _ in self.pending.values() for f in files_of(other, STATE)
            }
            lost = [f.path for f in files_of(chain, STATE) if f.path not in held | others]
            self.delete(lost)
            more = set(self.log.given_up(number)) - set(lost)
            assert not more & (held | others)
            self.delete(more)
            return
        self.complete(number, chain, values)

    def complete(self, number, chain, values):
        files = [file.path for file in files_of(chain, STATE)]
        self.completed.append((number, files, values))
        self.verify()
        subsumed, self.completed = self.completed[:-2], self.completed[-2:]
        kept = {path for known in self.completed for path in known[1]}
        kept |= {f.path for other, _, _ in self.pending.values() for f in files_of(other, STATE)}
        self.delete({path for old in subsumed for path in old[1] if path not in kept})
        if self.rng.random() < 0.7:
            self.delete(self.log.complete(number))

    def verify(self):
        """S5: every retained checkpoint restores what the state was."""
        for _, files, values in self.completed:
            replayed = {}
            for path in files:
                is_whole, content = self.files[path]
                replayed = dict(content) if is_whole else {**replayed, **content}
            assert {k: v for k, v in replayed.items() if v is not None} == values

    def restart(self):
        """The subtask goes and another one restores; the coordinator aborts what is pending."""
        for number in list(self.pending):
            _, _, merged = self.pending.pop(number)
            self.delete(self.log.given_up(number))
            self.delete(merged.paths if merged is not None else ())
        self.delete(self.log.close())
        while self.under_way:
            self.end_one()
        self.log = Changelog(POLICY)
        self.position, self.changed = START, {}
        if not self.completed:
            self.values = {}
            self.log.begun()
            return
        number, files, values = self.completed[-1]
        self.values = dict(values)
        handles = tuple(StateFile(p, len(self.files[p][1]) + 1, shared=True) for p in files)
        self.log.restored(number, {STATE: handles}, merged=False)


@pytest.mark.parametrize("case", range(8))
def test_no_history_loses_a_file_or_leaves_one_over(case) -> None:
    """S5 S4 C7 C9: aborts before and after the ack, failed uploads, restarts, two at a time."""
    rng = dice(f"changelog history {case}")
    job = Job(rng)
    most_pending = rng.choice((1, 1, 2))
    while job.checkpoint < CHECKPOINTS:
        job.work()
        job.between()
        if len(job.pending) < most_pending and rng.random() < 0.7:
            job.begin_checkpoint()
        if job.pending and rng.random() < 0.7:
            job.end_checkpoint(min(job.pending))
        if rng.random() < 0.01:
            job.restart()
    assert len(job.completed) == 2, "most checkpoints complete"
    assert job.longest <= 2 * MOST_SEGMENTS
    job.restart()

    assert set(job.files) == {path for _, files, _ in job.completed for path in files}
