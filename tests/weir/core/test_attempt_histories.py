"""Whatever happens to a job, in whatever order, what must always hold of its attempts holds.

The world here obeys: it starts, ends and recycles what it is told to, and knows what runs where.
Its news is as bad as news can be: slots vanish, subtasks fail at any stage, and words come late or
again. In the end the world turns kind, and a job that has not ended must run again.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from attempt_story import APART, FORWARDED, SHUFFLED
from weir.core import attempt as a
from weir.core.lifecycle import JobStatus, SubtaskFinished, SubtaskRunning, TimePassed
from weir.core.phases import Deploying, Ended, Restoring, Running, Stopping
from weir.core.restarts import DEFAULT_STRATEGY, UNLIMITED, FailureRate, FixedDelay
from weir.core.topology import Edge, EdgeKind, Operator, Topology

LOPSIDED = Topology(
    (Operator("read", 3), Operator("pair", 3), Operator("sum", 1), Operator("alone", 2)),
    (
        Edge("rows", "read", "pair", EdgeKind.FORWARD),
        Edge("tail", "alone", "sum", EdgeKind.GLOBAL),
    ),
)

STRATEGIES = [DEFAULT_STRATEGY, FixedDelay(UNLIMITED, 0), FixedDelay(3, 50), FailureRate(2, 100, 5)]

draws = st.floats(0, 1, exclude_max=True)
picks = st.integers(0, 10**6)


class JobInABadWorld(RuleBasedStateMachine):
    """R1, R2, R3, R4: obeys every action at once and keeps its own account of what runs."""

    @initialize(
        topology=st.sampled_from([SHUFFLED, FORWARDED, APART, LOPSIDED]),
        strategy=st.sampled_from(STRATEGIES),
        slots=st.integers(0, 4),
    )
    def create(self, topology, strategy, slots):
        self.topology = topology
        self.state = a.initial(topology, strategy)
        self.alive = set()
        self.born = []
        self.deployed = {}
        self.deployments = []
        self.heard = []
        self.status = a.ReportStatus(JobStatus.CREATED, 0)
        for _ in range(slots):
            self.tell(a.SlotRegistered(*self.another_slot("e1")))
        self.tell(a.JobStarted())

    def another_slot(self, executor):
        self.born.append(f"slot-{len(self.born)}")
        self.alive.add(self.born[-1])
        return self.born[-1], executor

    def tell(self, event):
        self.heard.append(event)
        self.state, actions = a.step(self.state, event)
        for action in actions:
            self.obey(action)

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
        assert all(attempt > before for before in self.deployments), "attempts grow"
        self.deployments.append(attempt)
        for subtask, slot in placements:
            assert subtask not in self.deployed, "a subtask runs once at a time"
            assert slot in self.alive, "in a slot that lives"
            self.deployed[subtask] = (attempt, slot)
        assert all(
            len({slot for other, (_, slot) in self.deployed.items() if other.index == index}) <= 1
            for index in range(self.topology.slots_needed)
        ), "and shares it with its own index"

    def bury(self, slot):
        self.alive.discard(slot)
        self.deployed = {s: place for s, place in self.deployed.items() if place[1] != slot}

    def pick(self, pick):
        return sorted(self.deployed)[pick % len(self.deployed)]

    # What can happen

    @rule(executor=st.sampled_from(["e1", "e2"]))
    @precondition(lambda self: len(self.alive) < 6)
    def slot_appears(self, executor):
        self.tell(a.SlotRegistered(*self.another_slot(executor)))

    @rule(pick=picks, draw=draws)
    @precondition(lambda self: self.alive)
    def slot_vanishes(self, pick, draw):
        slot = sorted(self.alive)[pick % len(self.alive)]
        self.bury(slot)
        self.tell(a.SlotLost(slot, draw))

    @rule(millis=st.sampled_from([0, 1, 50, 1_000, 100_000, 4_000_000]))
    def time_passes(self, millis):
        self.tell(TimePassed(self.state.now + millis))

    @rule()
    @precondition(lambda self: a.next_deadline(self.state) is not None)
    def delay_is_over(self):
        self.tell(TimePassed(a.next_deadline(self.state)))

    @rule()
    @precondition(lambda self: isinstance(self.state.phase, Restoring))
    def restore_point_is_found(self):
        self.tell(a.RestorePointReady(self.state.phase.attempt))

    @rule()
    @precondition(lambda self: isinstance(self.state.phase, Deploying))
    def all_come_up(self):
        for subtask in sorted(self.deployed):
            self.tell(SubtaskRunning(self.deployed[subtask][0], subtask))

    @rule(pick=picks)
    @precondition(lambda self: self.deployed)
    def one_comes_up(self, pick):
        subtask = self.pick(pick)
        self.tell(SubtaskRunning(self.deployed[subtask][0], subtask))

    @rule(pick=picks)
    @precondition(lambda self: self.deployed)
    def one_finishes(self, pick):
        subtask = self.pick(pick)
        attempt, _ = self.deployed.pop(subtask)
        self.tell(SubtaskFinished(attempt, subtask))

    @rule(pick=picks, cause=st.sampled_from(a.FailureCause), draw=draws)
    @precondition(lambda self: self.deployed)
    def one_fails(self, pick, cause, draw):
        subtask = self.pick(pick)
        self.tell(a.SubtaskFailed(self.deployed[subtask][0], subtask, cause, draw))

    @rule(draw=draws)
    def coordinator_gives_up(self, draw):
        self.tell(a.AttemptDoomed("no checkpoint for too long", draw))

    @rule(pick=picks)
    def an_old_word_comes_again(self, pick):
        """Except the coordinator's own, which come once: nothing in them tells their age."""
        old = [e for e in self.heard if not isinstance(e, a.AttemptDoomed | a.StopConfirmed)]
        event = old[pick % len(old)]
        match event:
            case a.SlotRegistered(slot) if slot not in self.alive:
                return
            case a.SlotLost(slot) if slot in self.alive:
                return
            case SubtaskFinished(attempt, subtask):
                assert self.deployed.get(subtask, (0, ""))[0] != attempt, "it has gone by itself"
        self.tell(event)

    @rule()
    def the_last_word_comes_again(self):
        before = self.state
        self.tell(self.heard[-1])
        assert self.state == before, "told twice is told once"

    @rule(pick=picks)
    @precondition(lambda self: isinstance(self.state.phase, Running))
    def the_last_savepoint_completes(self, pick):
        if pick % 4 == 0:
            self.tell(a.StopConfirmed())

    @rule(pick=picks)
    def somebody_cancels(self, pick):
        if pick % 16 == 0:
            self.tell(a.CancelRequested())

    # What must hold

    @invariant()
    def what_is_believed_to_run_does_run(self):
        roster = self.state.roster
        live = {s: e.attempt for s, e in roster.executions.items() if e.stage.is_live}
        assert live == {subtask: attempt for subtask, (attempt, _) in self.deployed.items()}
        assert all(roster.slot_of(s) == slot for s, (_, slot) in self.deployed.items())

    @invariant()
    def registered_slots_live(self):
        assert set(self.state.roster.slots) == self.alive

    @invariant()
    def a_region_goes_through_its_attempts_as_one(self):
        for region in set(self.topology.regions.values()):
            members = [s for s in self.topology.subtasks if self.topology.regions[s] == region]
            assert len({self.state.roster.executions[s].attempt for s in members}) == 1

    @invariant()
    def a_running_job_has_nothing_down(self):
        if isinstance(self.state.phase, Running | Stopping):
            stages = {e.stage for e in self.state.roster.executions.values()}
            assert stages <= {"running", "finished"}

    @invariant()
    def an_ended_job_has_nothing_running(self):
        if isinstance(self.state.phase, Ended):
            assert not self.deployed
            assert self.status.status.is_terminal

    @invariant()
    def the_status_is_the_one_that_was_reported(self):
        assert self.state.reported == self.status == a.status_of(self.state)

    def teardown(self):
        """A kind world: slots, time and answers. Every job that has not ended has a way out."""
        if not hasattr(self, "state"):
            return
        for _ in range(self.topology.slots_needed):
            self.tell(a.SlotRegistered(*self.another_slot("e3")))
        for _ in range(3):
            self.answer_everything()
        assert isinstance(self.state.phase, Running | Stopping | Ended)

    def answer_everything(self):
        if a.next_deadline(self.state) is not None:
            self.delay_is_over()
        if isinstance(self.state.phase, Restoring):
            self.restore_point_is_found()
        if isinstance(self.state.phase, Deploying):
            self.all_come_up()


TestJobInABadWorld = JobInABadWorld.TestCase
TestJobInABadWorld.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
