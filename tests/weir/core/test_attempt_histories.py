"""Whatever happens to a job, in whatever order, what must always hold of its attempts holds.

The world here starts, ends and recycles processes as decided, and knows what runs where.
Its events are bad: slots vanish, subtasks fail at any stage, events come late or twice. In the end
the world turns kind, and a job that has not ended must run again.

Histories are walked by weighted chance and not rule by rule: a failure is interesting only in a job
that has come far, and an even choice among all that can happen never lets it come far.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from attempt_scenario import APART, FORWARDED, SHUFFLED
from weir.core import attempt as a
from weir.core.lifecycle import JobStatus, SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.phases import Ended, Restoring, Running, Stopping, status_of
from weir.core.restarts import DEFAULT_STRATEGY, UNLIMITED, FailureRate, FixedDelay
from weir.core.topology import Edge, EdgeKind, Operator, Topology

LOPSIDED = Topology(
    (Operator("read", 3), Operator("pair", 3), Operator("sum", 1), Operator("alone", 2)),
    (
        Edge("rows", "read", "pair", EdgeKind.FORWARD),
        Edge("tail", "alone", "sum", EdgeKind.GLOBAL),
    ),
)

TOPOLOGIES = [SHUFFLED, FORWARDED, APART, LOPSIDED]
STRATEGIES = [DEFAULT_STRATEGY, FixedDelay(UNLIMITED, 0), FixedDelay(9, 50), FailureRate(3, 100, 5)]

EVENTS = 120


class World:
    """Carries out every action at once and tracks what runs."""

    def __init__(self, chance):
        self.chance = chance
        self.topology = chance.choice(TOPOLOGIES)
        self.state = a.initial(self.topology, chance.choice(STRATEGIES))
        self.alive = []
        self.slots_born = 0
        self.deployed = {}
        self.newest = 0
        self.heard = []
        self.status = a.ReportStatus(JobStatus.CREATED, 0)

    def tell(self, event):
        self.heard.append(event)
        self.state, actions = a.step(self.state, event)
        for action in actions:
            self.obey(action)
        self.check()

    def obey(self, action):
        match action:
            case a.Deploy(attempt, placements):
                self.deploy(attempt, placements)
            case a.ResetSubtasks(slot, subtasks):
                assert slot in self.alive, "a reset is sent to a process that lives"
                for subtask in subtasks:
                    assert self.deployed.pop(subtask)[1] == slot, "and ends what runs there"
            case a.RecycleSlot(slot):
                assert slot in self.alive, "a process is ended once"
                self.bury(slot)
            case a.ReportStatus():
                assert action != self.status, "a status is reported when it changes"
                assert not self.status.status.is_terminal, "and never after the last"
                self.status = action
            case a.FindRestorePoint(_, subtasks) | a.ReportRestart(_, subtasks):
                assert subtasks, "something is always meant"

    def deploy(self, attempt, placements):
        assert attempt > self.newest, "attempts grow"
        self.newest = attempt
        for subtask, slot in placements:
            assert subtask not in self.deployed, "a subtask runs once at a time"
            assert slot in self.alive, "in a slot that lives"
            self.deployed[subtask] = (attempt, slot)
        shared = {(slot, subtask.index) for subtask, (_, slot) in self.deployed.items()}
        assert len({slot for slot, _ in shared}) == len(shared), "and shares it with its own index"
        assert len({index for _, index in shared}) == len(shared), "all of which is there"

    def bury(self, slot):
        self.alive.remove(slot)
        self.deployed = {s: place for s, place in self.deployed.items() if place[1] != slot}

    def check(self):
        execution_graph, phase = self.state.graph, self.state.phase
        live = {
            s: (e.attempt, execution_graph.slot_of(s))
            for s, e in execution_graph.executions.items()
            if e[1].is_live
        }
        assert live == self.deployed, "what is believed to run does run"
        assert sorted(execution_graph.slots) == sorted(self.alive), "registered slots live"
        for region in set(self.topology.regions.values()):
            members = [s for s in self.topology.subtasks if self.topology.regions[s] == region]
            attempts = {execution_graph.executions[s].attempt for s in members}
            assert len(attempts) == 1, "a region goes through its attempts as one"
        if isinstance(phase, Running | Stopping):
            stages = {execution.stage for execution in execution_graph.executions.values()}
            assert stages <= {"running", "finished"}, "a running job has nothing down"
        assert not (isinstance(phase, Ended) and self.deployed), "an ended job runs nowhere"
        status = a.ReportStatus(*status_of(phase, execution_graph))
        assert self.state.reported == self.status == status, "all is reported"

    # What can happen. Each is a thing that may not be possible now, and then does not happen.

    def slot_appears(self):
        if len(self.alive) < self.topology.slots_needed + 2:
            self.slots_born += 1
            slot = f"slot-{self.slots_born}"
            self.alive.append(slot)
            self.tell(a.SlotRegistered(slot, self.chance.choice(["e1", "e2"])))

    def slot_vanishes(self):
        if self.alive:
            slot = self.chance.choice(self.alive)
            self.bury(slot)
            self.tell(a.SlotLost(slot, self.chance.random()))

    def time_passes(self):
        self.tell(TimePassed(self.state.now + self.chance.choice([0, 1, 50, 1_000, 4_000_000])))

    def delay_ends(self):
        if (deadline := a.next_deadline(self.state)) is not None:
            self.tell(TimePassed(deadline))

    def restore_point_is_found(self):
        if isinstance(self.state.phase, Restoring):
            self.tell(a.RestorePointReady(self.state.phase.attempt))

    def all_come_up(self):
        for subtask, (attempt, _) in sorted(self.deployed.items()):
            self.tell(SubtaskRunning(attempt, subtask))

    def one_comes_up(self):
        if self.deployed:
            subtask, (attempt, _) = self.chance.choice(sorted(self.deployed.items()))
            self.tell(SubtaskRunning(attempt, subtask))

    def one_finishes(self):
        if self.deployed:
            subtask, (attempt, _) = self.chance.choice(sorted(self.deployed.items()))
            del self.deployed[subtask]
            self.tell(SubtaskFinished(attempt, subtask))

    def one_fails(self):
        if self.deployed:
            subtask, (attempt, _) = self.chance.choice(sorted(self.deployed.items()))
            cause = self.chance.choice(list(a.FailureCause))
            self.tell(a.SubtaskFailed(attempt, subtask, cause, self.chance.random()))

    def coordinator_gives_up(self):
        self.tell(a.AttemptFailed("no checkpoint for too long", self.chance.random()))

    def old_word_comes_again(self):
        """Except the coordinator's own, which come once: they carry no attempt."""
        event = self.chance.choice(self.heard)
        match event:
            case a.AttemptFailed() | a.StopConfirmed() | a.CancelRequested():
                return
            case a.SlotRegistered(slot) if slot not in self.alive:
                return
        self.tell(event)

    def last_word_comes_again(self):
        before = self.state
        self.tell(self.heard[-1])
        assert self.state == before, "a repeated event changes nothing"

    def last_savepoint_completes(self):
        self.tell(a.StopConfirmed())

    def a_user_cancels(self):
        self.tell(a.CancelRequested())

    def goes_on(self):
        self.delay_ends()
        self.restore_point_is_found()

    def turns_kind(self):
        while len(self.alive) < self.topology.slots_needed + 2:
            self.slot_appears()
        for _ in range(2):
            self.goes_on()
            self.all_come_up()


WEIGHTS = {
    World.slot_appears: 12,
    World.slot_vanishes: 5,
    World.time_passes: 4,
    World.goes_on: 12,
    World.restore_point_is_found: 12,
    World.all_come_up: 8,
    World.one_comes_up: 12,
    World.one_finishes: 2,
    World.one_fails: 6,
    World.coordinator_gives_up: 1,
    World.old_word_comes_again: 10,
    World.last_word_comes_again: 3,
    World.last_savepoint_completes: 0.1,
    World.a_user_cancels: 0.1,
}


@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=True))
def test_every_history_keeps_to_the_rules_and_leaves_a_way_out(chance):
    """R1, R2, R3, R4: never two tries of one subtask, never a dead slot, never a dead end."""
    world = World(chance)
    world.tell(a.JobStarted())

    for happens in chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=EVENTS):
        happens(world)
    world.turns_kind()

    assert isinstance(world.state.phase, Running | Stopping | Ended)
