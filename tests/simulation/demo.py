"""Shows the core at work: a simulated job takes checkpoints while everything around it breaks.

The coordinator, the alignment, the recovery and the commits are the production ones; user code,
network and storage are simulated, slowed down so that a person can watch. What breaks, and when, is
written down below. The verdict at the end is computed from the external system's content alone.
"""

import sys
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import replace

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from simulation.driver import Driver
from simulation.scenario import Chances, Scenario, draw
from simulation.simulation import Simulation
from weir.core.coordinator import actions
from weir.core.coordinator.state import Collecting
from weir.core.job import Launch
from weir.core.policy import Policy
from weir.core.restarts import UNLIMITED, FixedDelay
from weir.core.snapshots import CheckpointKind
from weir.core.telling import tell

SLOWER = 16
"""Real milliseconds for each simulated one."""

LINES = 14
TOLD = (
    actions.ReportCompleted,
    actions.ReportAborted,
    actions.EndDriver,
    actions.Answer,
    Launch,
)


def act(simulation: Simulation) -> None:
    """The play: a slot dies, the driver dies, a driver sleeps and wakes, the job is rescaled."""

    def kill_slot() -> None:
        simulation.world.saw("fault: a slot is killed")
        driver = simulation.current
        driver.lose_slot(min(driver.slots))

    def kill_driver() -> None:
        simulation.world.saw("fault: the driver is killed, and its slots with it")
        simulation.kill_driver(simulation.current)

    def make_zombie() -> None:
        driver = simulation.current
        simulation.world.saw("fault: the driver freezes; another one takes the job over")
        driver.paused = True
        simulation.replace_driver(driver)
        simulation.world.at(150, wake, driver)

    def wake(driver: Driver) -> None:
        simulation.world.saw("fault: the frozen driver wakes and goes on as if nothing happened")
        driver.wake()

    def stop() -> None:
        simulation.world.saw("fault: somebody stops the job with a savepoint, to rescale it")
        simulation.ask(simulation.current, CheckpointKind.SAVEPOINT_SUSPEND)

    for when, what in ((250, kill_slot), (520, kill_driver), (800, make_zombie), (1150, stop)):
        simulation.world.at(when, what)


def scenario() -> Scenario:
    """A keyed stream with a shuffle, a checkpoint every 60 ms, and no chance at all."""
    drawn = draw(2)
    assert drawn.shape.name == "shuffle", "the demo is about a shuffle"
    return replace(
        drawn,
        policy=Policy(interval_ms=60, timeout_ms=1000, tolerable_failures=5, incremental=True),
        strategy=FixedDelay(UNLIMITED, 20),
        chances=Chances(),
        widths=(("source", 2), ("keyed", 3), ("sink", 3)),
        splits=8,
        rows=40,
        pace=8,
        standby=1,
        delays=(1, 4),
        turn_cost=1,
        bottleneck="",
        calm_at=10_000,
    )


class Show:
    """What is on the screen."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.lines: deque[Text] = deque(maxlen=LINES)
        self.heard = 0
        self.faults: Counter[str] = Counter()

    def catch_up(self) -> list[Text]:
        """The lines that the last moment added."""
        fresh: list[Text] = []
        world = self.simulation.world
        for name in sorted(world.seen):
            if name.startswith("fault: ") and world.seen[name] > self.faults[name]:
                self.faults[name] = world.seen[name]
                fresh.append(Text(f"{world.now:>5} ms  ✗ {name.removeprefix('fault: ')}", "red"))
        while world.story:
            now, _, what = world.story.popleft()
            if isinstance(what, TOLD):
                said = tell(what, job="demo")
                fresh.append(Text(f"{now:>5} ms    {said.text}", _style(what)))
        self.lines.extend(fresh)
        return fresh

    def render(self) -> Group:
        world = self.simulation.world
        driver = self.simulation.current
        title = f"{world.now} ms · {driver.name} · epoch {driver.epoch} · {driver.status}"
        return Group(
            Panel(_graph(self.simulation), title="dataflow", subtitle=title),
            Panel(_checkpoints(driver), title="checkpoints"),
            Panel(_unwrapped(self.lines), title="what happened", height=LINES + 2),
        )


def _unwrapped(lines: Iterable[Text]) -> Text:
    """One line each, however narrow the terminal."""
    return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)


def _style(what: object) -> str:
    if isinstance(what, actions.ReportCompleted):
        return "green"
    return "yellow" if isinstance(what, actions.ReportAborted) else ""


def _graph(simulation: Simulation) -> Text:
    topology = simulation.current.topology
    parts = [f"{o.id} ×{o.parallelism}" for o in topology.operators]
    rows = len(simulation.external.committed)
    return Text(f"{'  ━▶  '.join(parts)}      {rows} rows committed")


def _checkpoints(driver: Driver) -> Table:
    table = Table.grid(padding=(0, 2))
    if driver.job is None:
        table.add_row("a new driver reads the log and takes the job over")
        return table
    state = driver.job.coordinator
    newest = [str(completed.checkpoint) for completed in state.completed]
    table.add_row("retained", ", ".join(newest) or "none yet")
    for pending in state.pending:
        stage = type(pending).__name__.lower()
        detail = ""
        if isinstance(pending, Collecting):
            detail = f"{len(pending.acks)} of {len(pending.ticket.plan.wait_for)} acked"
        table.add_row(str(pending.ticket.checkpoint), pending.ticket.request.kind, stage, detail)
    return table


def main() -> int:
    console = Console(highlight=False)
    simulation = Simulation(scenario())
    act(simulation)
    show = Show(simulation)
    if console.is_terminal:
        _watch(simulation, show, console)
    else:
        for _ in simulation.moments():
            for line in show.catch_up():
                console.print(line)
    expected, delivered = simulation.oracle.tally()
    lost = sum((expected - delivered).values())
    doubled = sum((delivered - expected).values())
    faults = sum(show.faults.values())
    console.print(
        f"{faults} faults, {simulation.world.seen['completed checkpoints']} checkpoints, "
        f"{len(simulation.drivers)} drivers"
    )
    console.print(
        f"exactly-once: {expected.total()} expected, {delivered.total()} delivered, "
        f"{lost} lost, {doubled} duplicated"
    )
    return 1 if lost or doubled else 0


def _watch(simulation: Simulation, show: Show, console: Console) -> None:
    with Live(console=console, refresh_per_second=12) as live:
        before = 0
        for now in simulation.moments():
            show.catch_up()
            live.update(show.render())
            time.sleep((now - before) * SLOWER / 1000)
            before = now


if __name__ == "__main__":
    sys.exit(main())
