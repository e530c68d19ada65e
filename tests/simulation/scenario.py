"""Draws one schedule's configuration from its seed: graph, policy, faults, and what people do.

Every knob that the specification lets a user turn is turned here, so that no combination is only
ever tried by a user. The shapes are small; the point is the number of orders, not of rows.
"""

import random
from dataclasses import dataclass, replace

from weir.core.changelog import ChangelogPolicy
from weir.core.file_pool import FileMergingPolicy
from weir.core.ids import EdgeId, OperatorId
from weir.core.policy import Mode, Policy, Retention
from weir.core.restarts import UNLIMITED, ExponentialDelay, FailureRate, FixedDelay, Strategy
from weir.core.topology import Edge, EdgeKind, Operator, Topology

MAX_PARALLELISM = 12


@dataclass(frozen=True)
class Shape:
    """A dataflow by name: operators with their roles, and edges."""

    name: str
    roles: tuple[tuple[str, str], ...]
    """(operator, role): source, map, union, keyed, broadcast-keyed, sink, hook."""
    edges: tuple[tuple[str, str, EdgeKind], ...]
    keeps_order: bool
    """Rows of one split reach a key's subtask in order, at any parallelism."""


_F, _H, _R, _S, _B, _G = (
    EdgeKind.FORWARD,
    EdgeKind.HASH,
    EdgeKind.REBALANCE,
    EdgeKind.RESCALE,
    EdgeKind.BROADCAST,
    EdgeKind.GLOBAL,
)

WATCHED = 4
"""One job in so many finds splits while it runs, and is restarted when it is stuck; another one's
storage does not delete for long what it has once refused to delete."""

SHAPES = (
    Shape(
        "chain",
        (("source", "source"), ("map", "map"), ("sink", "sink")),
        (("source", "map", _F), ("map", "sink", _F)),
        keeps_order=False,
    ),
    Shape(
        "slices",
        (("source", "source"), ("map", "union"), ("sink", "sink")),
        (("source", "map", _F), ("map", "sink", _F)),
        keeps_order=False,
    ),
    Shape(
        "shuffle",
        (("source", "source"), ("keyed", "keyed"), ("sink", "sink")),
        (("source", "keyed", _H), ("keyed", "sink", _F)),
        keeps_order=True,
    ),
    Shape(
        "two inputs",
        (("left", "source"), ("right", "source"), ("keyed", "keyed"), ("sink", "sink")),
        (("left", "keyed", _H), ("right", "keyed", _H), ("keyed", "sink", _F)),
        keeps_order=True,
    ),
    Shape(
        "diamond",
        (
            ("source", "source"),
            ("upper", "map"),
            ("lower", "union"),
            ("keyed", "keyed"),
            ("sink", "sink"),
        ),
        (
            ("source", "upper", _F),
            ("source", "lower", _R),
            ("upper", "keyed", _H),
            ("lower", "keyed", _H),
            ("keyed", "sink", _F),
        ),
        keeps_order=False,
    ),
    Shape(
        "union",
        (("left", "source"), ("right", "source"), ("map", "map"), ("sink", "sink")),
        (("left", "map", _S), ("right", "map", _R), ("map", "sink", _S)),
        keeps_order=False,
    ),
    Shape(
        "broadcast",
        (("source", "source"), ("rules", "source"), ("keyed", "broadcast-keyed"), ("sink", "sink")),
        (("source", "keyed", _H), ("rules", "keyed", _B), ("keyed", "sink", _F)),
        keeps_order=True,
    ),
    Shape(
        "pointwise",
        (("source", "source"), ("map", "map"), ("keyed", "keyed"), ("sink", "sink")),
        (("source", "map", _S), ("map", "keyed", _H), ("keyed", "sink", _S)),
        keeps_order=False,
    ),
    Shape(
        "global",
        (("source", "source"), ("keyed", "keyed"), ("sink", "sink")),
        (("source", "keyed", _H), ("keyed", "sink", _G)),
        keeps_order=True,
    ),
)


@dataclass(frozen=True)
class Chances:
    """How often each fault strikes, per opportunity."""

    user_code: float = 0.0
    slot_death: float = 0.0
    driver_death: float = 0.0
    zombie: float = 0.0
    connection: float = 0.0
    lost_control: float = 0.0
    doubled_control: float = 0.0
    store_fails: float = 0.0
    store_unknown: float = 0.0
    store_partial: float = 0.0
    store_slow: float = 0.0
    store_keeps: float = 0.0
    stale_listing: float = 0.0
    commit_lost: float = 0.0
    clock_jump: float = 0.0
    sync_failure: float = 0.0
    notification: float = 0.0
    declined: float = 0.0
    stray_ack: float = 0.0
    death_while_stopping: float = 0.0
    hook_failure: float = 0.0
    standstill: float = 0.0
    request: float = 0.0
    stop: float = 0.0
    upgrade: float = 0.0
    rollback: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """Everything that a schedule's seed decides before it starts."""

    seed: int
    shape: Shape
    widths: tuple[tuple[str, int], ...]
    policy: Policy
    strategy: Strategy
    chances: Chances
    splits: int
    rows: int
    has_hook: bool
    hook_delay: int
    credit: int
    output_limit: int
    pace: int
    """Milliseconds between two polls of a source."""
    calm_at: int
    standby: int
    delays: tuple[int, int]
    turn_cost: int
    """Milliseconds that a slot's turn takes."""
    bottleneck: str
    """An operator, or nothing, whose turns take much longer: queues before it are full."""
    bottleneck_cost: int
    finds_late: bool
    """Half of the splits are found only while the job runs."""
    merging: FileMergingPolicy | None
    """How the subtasks of a slot share files; None: not at all."""
    changelog: ChangelogPolicy | None
    """How changes of keyed state are logged; None: not at all."""
    health_ms: int
    """A running job without a completed checkpoint for this long is restarted; zero: never."""

    def topology(self, *, salt: int = 0) -> Topology:
        """The graph, at the widths of this deployment (another salt, other widths)."""
        widths = dict(self.widths)
        if salt:
            widths = dict(draw_widths(random.Random(self.seed * 1000 + salt), self.shape))
        roles = dict(self.shape.roles)
        operators = [
            Operator(
                OperatorId(name),
                widths[name],
                MAX_PARALLELISM,
                is_sink=role == "sink",
                has_union_state=role == "union",
                is_coordinated=role == "source" or (name == "sink" and self.has_hook),
            )
            for name, role in roles.items()
        ]
        edges = [
            Edge(EdgeId(f"{a}->{b}"), OperatorId(a), OperatorId(b), kind)
            for a, b, kind in self.shape.edges
        ]
        return Topology(tuple(operators), tuple(edges))


def draw(seed: int) -> Scenario:
    rng = random.Random(seed)
    shape = SHAPES[seed % len(SHAPES)]
    slowest = rng.choice((2, 4, 10))
    downstream = [name for name, role in shape.roles if role != "source"]
    bottleneck = rng.choice(downstream) if rng.random() < 0.4 else ""
    policy = draw_policy(rng, 2 * slowest + 20 if bottleneck else slowest)
    changelog = draw_changelog(seed)
    if changelog is not None:
        policy = replace(policy, incremental=True)
    kind = seed // len(SHAPES) % WATCHED
    is_watched = kind == 1
    return Scenario(
        seed=seed,
        shape=shape,
        widths=draw_widths(rng, shape),
        policy=policy,
        strategy=draw_strategy(rng, policy),
        chances=replace(draw_chances(rng), store_keeps=0.1 if kind == WATCHED - 1 else 0.0),
        splits=rng.randint(3, 6),
        rows=rng.randint(8, 20),
        has_hook=rng.random() < 0.4,
        hook_delay=rng.randint(1, 25),
        credit=rng.randint(1, 3),
        output_limit=rng.randint(1, 3),
        pace=rng.randint(4, 14),
        calm_at=rng.randint(500, 1200),
        standby=rng.randint(0, 1),
        delays=(1, slowest),
        turn_cost=rng.choice((1, 1, 1, 2, 4)),
        bottleneck=bottleneck,
        bottleneck_cost=rng.randint(6, 16),
        finds_late=is_watched,
        merging=draw_merging(seed),
        changelog=changelog,
        health_ms=draw_health(rng, policy) if is_watched else 0,
    )


def draw_merging(seed: int) -> FileMergingPolicy | None:
    """Half of the jobs merge; drawn apart, so that the other half is what it always was."""
    rng = random.Random(f"{seed} merging")
    if rng.random() < 0.5:
        return None
    return FileMergingPolicy(
        max_file_size=rng.choice((6, 40, 1000)),
        max_space_amplification=rng.choice((1.2, 2.0, 2.0, 5.0)),
        longest_wait_ms=rng.choice((None, 1, 20)),
    )


def draw_changelog(seed: int) -> ChangelogPolicy | None:
    """A third of the jobs log; drawn apart, so that the others are what they always were."""
    rng = random.Random(f"{seed} changelog")
    if rng.random() < 0.67:
        return None
    return ChangelogPolicy(
        materialization_interval_ms=rng.choice((20, 100, 1000)),
        preemptive_bytes=rng.choice((1, 4, 20)),
    )


def draw_health(rng: random.Random, policy: Policy) -> int:
    """Longer than a checkpoint takes once all is calm, or the job would never come to rest."""
    if not policy.is_periodic:
        return 0
    return policy.timeout_ms // 2 + 3 * policy.period_ms + rng.randint(100, 400)


def draw_widths(rng: random.Random, shape: Shape) -> tuple[tuple[str, int], ...]:
    """Random widths; operators joined by forward edges share one."""
    widths = {name: rng.randint(1, 3) for name, _ in shape.roles}
    for source, target, kind in shape.edges:
        if kind is EdgeKind.FORWARD:
            widths[target] = widths[source]
    return tuple(widths.items())


def draw_policy(rng: random.Random, slowest: int) -> Policy:
    """A timeout that a quiet job on a slow network can keep: what never heals is no test."""
    mode = rng.choices((Mode.EXACTLY_ONCE, Mode.AT_LEAST_ONCE), (0.8, 0.2))[0]
    unaligned = mode is Mode.EXACTLY_ONCE and rng.random() < 0.5
    concurrent = 1 if unaligned else rng.choice((1, 1, 2, 3))
    policy = Policy(
        interval_ms=rng.choice((12, 20, 30, 45, 60)),
        min_pause_ms=rng.choice((0, 0, 15, 40)) if concurrent == 1 else 0,
        timeout_ms=rng.choice((80, 120, 200)) * (4 + slowest),
        max_concurrent=concurrent,
        tolerable_failures=rng.choice((0, 1, 3, 20, 20)),
        mode=mode,
        unaligned=unaligned,
        aligned_timeout_ms=rng.choice((0, 0, 6, 20)) if unaligned else 0,
        after_tasks_finish=rng.random() < 0.8,
        retained=rng.randint(1, 3),
        retention=rng.choice(tuple(Retention)),
        incremental=rng.random() < 0.5,
        managed=rng.random() < 0.2,
        max_queued=rng.choice((2, 3, 1000)),
    )
    if rng.random() < 0.03:
        return replace(policy, interval_ms=0)
    return policy


def draw_strategy(rng: random.Random, policy: Policy) -> Strategy:
    """Giving up is tried only where a failed job's checkpoints are retained."""
    endless = FixedDelay(UNLIMITED, rng.randint(1, 30))
    if policy.retention is Retention.NEVER_RETAIN_AFTER_TERMINATION:
        return endless
    return rng.choice(
        (endless, endless, ExponentialDelay(5, 1.5, 60, 400, 0.2), FailureRate(3, 200, 10))
    )


def draw_chances(rng: random.Random) -> Chances:
    """Each schedule has some kinds of faults, so that runs differ in kind and not only in luck."""

    def some(rate: float, likely: float = 0.5) -> float:
        return rate * rng.random() * 2 if rng.random() < likely else 0.0

    return Chances(
        user_code=some(0.004),
        slot_death=some(0.025),
        driver_death=some(0.012),
        zombie=some(0.012),
        connection=some(0.012),
        lost_control=some(0.02),
        doubled_control=some(0.05),
        store_fails=some(0.02),
        store_unknown=some(0.05),
        store_partial=some(0.01, 0.3),
        store_slow=some(0.03),
        stale_listing=some(0.5),
        commit_lost=some(0.2),
        clock_jump=some(0.02, 0.2),
        sync_failure=some(0.004, 0.25),
        notification=some(0.004, 0.2),
        declined=some(0.01, 0.25),
        stray_ack=some(0.02, 0.2),
        death_while_stopping=some(0.5),
        hook_failure=some(0.05, 0.4),
        standstill=some(0.02, 0.4),
        request=some(0.05, 0.7),
        stop=some(0.012, 0.5),
        upgrade=some(0.01, 0.4),
        rollback=some(0.02, 0.4),
    )
