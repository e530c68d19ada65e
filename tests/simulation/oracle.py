"""Judges a schedule by what a user can see: output, state, files, the log, answers.

The reference is the sequential one: every row of every split once. It knows nothing of how the
job works; what it refuses is loss, repetition, wrong order, dangling transactions, files deleted
too early or left behind, and questions without an answer.
"""

from collections import Counter
from dataclasses import dataclass, replace

from simulation.external import External
from simulation.row_values import key_of
from simulation.scenario import Scenario
from simulation.store import Store
from simulation.world import World
from weir.core import graph_validation, restore_decision, retention
from weir.core.checkpoint_paths import manifest_path
from weir.core.ids import CheckpointId, EdgeId, Epoch
from weir.core.log_entries import CheckpointLogged, EpochTaken, readable
from weir.core.policy import Mode
from weir.core.snapshots import Manifest
from weir.core.topology import Edge, EdgeKind, Topology


@dataclass(frozen=True)
class Ending:
    """What the driver that finished the job left behind."""

    epoch: Epoch
    topology: Topology
    known: frozenset[str]
    """Files that were reported to it."""
    unanswered: frozenset[str]


class Oracle:
    """What must be true of a run, seen from outside."""

    def __init__(self, world: World, scenario: Scenario, store: Store, external: External) -> None:
        self.world = world
        self.scenario = scenario
        self.store = store
        self.external = external
        self.borrowed: set[str] = set()
        """Manifests that a deployment restored without claiming them."""
        self._protected: frozenset[str] = frozenset()
        self._protected_at = (-1, -1)

    # -- before it starts

    def check_graph_validation(self) -> None:
        """The graph of this schedule is accepted; one with a loop or a pushy source is not."""
        topology = self.scenario.topology()
        if graph_validation.validate(topology):
            self.world.violated(f"{self.scenario.shape.name} was refused")
        first, last = topology.operators[0], topology.operators[-1]
        back = Edge(EdgeId("back"), last.id, first.id, EdgeKind.REBALANCE)
        looped = Topology(topology.operators, (*topology.edges, back))
        refused = [type(finding) for finding in graph_validation.validate(looped)]
        forced = [type(finding) for finding in graph_validation.validate(looped, force_cycles=True)]
        if refused != [graph_validation.Refused] or forced != [graph_validation.Warned]:
            self.world.violated(f"a cycle was judged {refused}, and {forced} when forced")
        self.world.saw("refused: cycle")
        pushy = replace(first, is_externally_induced=True)
        pushed = Topology((pushy, *topology.operators[1:]), topology.edges)
        if [type(finding) for finding in graph_validation.validate(pushed)] != [
            graph_validation.Refused
        ]:
            self.world.violated("an externally induced checkpoint was admitted")
        self.world.saw("refused: externally induced")

    # -- while it runs

    def is_protected(self, path: str) -> bool:
        """Whether a restore may still need this file."""
        stamp = (len(self.store.log), max(self.store.log, default=-1))
        if stamp != self._protected_at:
            self._protected_at = stamp
            self._protected = self._referenced(self._restorable())
        return path in self._protected

    def _restorable(self) -> list[str]:
        """Manifests that must stay whole: retained ones, savepoints, borrowed ones."""
        entries = readable(self.store.log)
        line = restore_decision.candidates(entries)
        claimed = {e.restoring for _, e in entries if isinstance(e, EpochTaken) and e.claims}
        kept = [c.path for c in line if c.owned][-self.scenario.policy.retained :]
        kept += [c.path for c in line[-1:]]
        savepoints = [
            e.manifest
            for _, e in entries
            if isinstance(e, CheckpointLogged) and e.kind.is_savepoint
        ]
        kept += [path for path in savepoints if path not in claimed]
        return kept + sorted(self.borrowed - claimed)

    def _referenced(self, manifests: list[str]) -> frozenset[str]:
        paths: set[str] = set()
        for path in manifests:
            manifest = self.store.files.get(path)
            if isinstance(manifest, Manifest):
                paths.add(path)
                paths |= {file.path for file in manifest.files()}
        return frozenset(paths)

    def check_restore(
        self, restore_request: restore_decision.RestoreRequest, manifest: Manifest
    ) -> None:
        line = restore_decision.candidates(readable(self.store.log))
        newest = line[-1].path if line else ""
        if newest != manifest_path(manifest.location):
            self.world.violated(
                f"restores {manifest.location} for {restore_request.deployment}, "
                f"but the newest is {newest}"
            )

    def older_checkpoint(self) -> str:
        """One that is retained behind the newest, if there is one."""
        line = restore_decision.candidates(readable(self.store.log))
        owned = [candidate.path for candidate in line if candidate.owned]
        older = owned[-self.scenario.policy.retained : -1]
        return older[-1] if older and older[-1] in self.store.files else ""

    def stopped_with(self, deployment: str) -> str:
        """The savepoint with which this deployment stopped; no other can have been asked to."""
        served, taken = "", [("", "")]
        for _, entry in readable(self.store.log):
            match entry:
                case EpochTaken():
                    served = entry.deployment
                case CheckpointLogged() if entry.kind.is_synchronous:
                    taken.append((served, entry.manifest))
        by, manifest = taken[-1]
        if by != deployment:
            self.world.violated(f"{deployment} stopped without its savepoint")
        return manifest

    def commits_after(self, checkpoint: CheckpointId) -> bool:
        """Whether a later checkpoint may have committed output."""
        entries = [e for _, e in readable(self.store.log) if isinstance(e, CheckpointLogged)]
        return any(e.kind.commits and e.checkpoint > checkpoint for e in entries)

    # -- at the end

    def judge(self, ending: Ending) -> None:
        self._judge_output()
        self._judge_state(ending)
        self._judge_log()
        self._judge_files(ending)
        dangling = self.external.dangling()
        if dangling:
            self.world.violated(f"transactions are left: {dangling[:3]}")
        if ending.unanswered:
            self.world.violated(f"{sorted(ending.unanswered)} were never answered")

    def _expected(self) -> Counter[tuple[int, int, str]]:
        """The sequential reference: which rows the sink must see, by split, offset and branch."""
        shape = self.scenario.shape
        sources = [name for name, role in shape.roles if role == "source"]
        rows: Counter[tuple[int, int, str]] = Counter()
        for number, source in enumerate(sources):
            edges = [(a, b, kind) for a, b, kind in shape.edges if a == source]
            if any(kind is EdgeKind.BROADCAST for _, _, kind in edges):
                continue
            tags = [source] if len(edges) == 1 else [f"{source}{a}->{b}" for a, b, _ in edges]
            for split in range(number, self.scenario.splits, len(sources)):
                for offset in range(self.scenario.rows):
                    rows.update((split, offset, tag) for tag in tags)
        return rows

    def tally(self) -> tuple[Counter[tuple[int, int, str]], Counter[tuple[int, int, str]]]:
        """The rows that the external system must hold, and those that it holds."""
        delivered = Counter((s, o, tag) for s, o, tag, _, _ in self.external.committed)
        return self._expected(), delivered

    def _judge_output(self) -> None:
        expected, delivered = self.tally()
        lost = expected - delivered
        if lost:
            self.world.violated(f"{sum(lost.values())} rows lost, such as {min(lost)}")
        extra = delivered - expected
        if extra and (self._exactly_once or set(extra) - set(expected)):
            self.world.violated(f"{sum(extra.values())} rows doubled, such as {min(extra)}")
        if self._exactly_once and self._has_keys:
            self._judge_counts()

    def _judge_counts(self) -> None:
        """Each key's rows are numbered 1, 2, 3, … : its state lost nothing and repeated nothing."""
        counts: dict[int, list[int]] = {}
        for _, _, _, key, count in self.external.committed:
            counts.setdefault(key, []).append(count)
        for key in sorted(counts):
            if sorted(counts[key]) != list(range(1, len(counts[key]) + 1)):
                self.world.violated(f"key {key} was counted {sorted(counts[key])}")

    @property
    def _exactly_once(self) -> bool:
        return self.scenario.policy.mode is Mode.EXACTLY_ONCE

    @property
    def _has_keys(self) -> bool:
        return any("keyed" in role for _, role in self.scenario.shape.roles)

    def _judge_state(self, ending: Ending) -> None:
        by_key: Counter[int] = Counter()
        for (split, offset, _), times in self._expected().items():
            by_key[key_of(split, offset)] += times
        if self._has_keys:
            for key, count in by_key.items():
                found = self.world.final.get(key, 0)
                wrong = found != count if self._exactly_once else found < count
                if wrong:
                    self.world.violated(f"key {key} ends with {found}, not {count}")
        if self._exactly_once:
            self._judge_rules(ending)
            self._judge_passed(ending)

    def _judge_passed(self, ending: Ending) -> None:
        """List state that was dealt out anew still adds up to every row that went through."""
        rows = self._expected()
        for name, role in self.scenario.shape.roles:
            branches = [f"{a}->{b}" for a, b, _ in self.scenario.shape.edges if b == name]
            tagged = [tag for _, _, tag in rows if any(edge in tag for edge in branches)]
            total = len(tagged) if tagged else len(rows)
            passed = [
                count
                for subtask, count in self.world.passed.items()
                if subtask.operator == name and subtask in ending.topology.subtasks
            ]
            is_map = role in ("map", "union")
            if is_map and self.world.passed_is_checked and sum(passed) != total:
                self.world.violated(f"{sum(passed)} rows went through {name}, not {total}")

    def _judge_rules(self, ending: Ending) -> None:
        """Every subtask of the last deployment knows every rule, once."""
        known = {s: r for s, r in self.world.rules.items() if s in ending.topology.subtasks}
        for subtask, rules in known.items():
            if any(times != 1 for times in rules.values()):
                self.world.violated(f"{subtask} saw a broadcast row more than once")
        sizes = {len(rules) for rules in known.values()}
        if len(sizes) > 1:
            self.world.violated(f"broadcast state differs between subtasks: {sorted(sizes)}")

    def _judge_log(self) -> None:
        epoch, newest = Epoch(0), CheckpointId(0)
        for index, entry in readable(self.store.log):
            if entry.epoch < epoch:
                self.world.violated(f"entry {index} is of epoch {entry.epoch}, after {epoch}")
            epoch = entry.epoch
            if isinstance(entry, CheckpointLogged) and entry.kind.commits:
                if entry.checkpoint <= newest:
                    self.world.violated(f"checkpoint {entry.checkpoint} after {newest}")
                newest = entry.checkpoint

    def _judge_files(self, ending: Ending) -> None:
        """Nothing needed is missing, nothing that the last driver knew of is left over."""
        referenced = self._referenced(self._restorable())
        for path in sorted(referenced):
            if path not in self.store.files:
                self.world.violated(f"{path} is referred to and missing")
        left = [
            path
            for path in sorted(self.store.files)
            if path in ending.known
            and self.store.epochs[path] == ending.epoch
            and path not in referenced
        ]
        if left:
            self.world.violated(f"{len(left)} files were left behind, such as {left[0]}")
        facts = retention.StorageFacts(ending.epoch, self.store.stored(), referenced)
        garbage = retention.garbage(facts)
        if any(path in referenced for path in garbage):
            self.world.violated("a file in use was taken for garbage")
        self.world.seen["garbage files"] += len(garbage)
