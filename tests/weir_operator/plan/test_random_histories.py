"""Whatever users, drivers, nodes and dying operators do, in whatever order, the promises hold.

The little cluster refuses at once what must never happen (two drivers, a lost restore point, a
dropped state); here histories are made up, and each must come to a good end.
"""

from contextlib import suppress
from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fake_cluster import FakeCluster, OperatorDiedError, a_spec
from weir_operator.plan.cluster_actions import KINDS, CreateDriver, Effect, EmitEvent
from weir_operator.plan.observed_state import Dependent
from weir_operator.resource import parse_status
from weir_operator.resource.status import LifecycleState
from weir_operator.resource.status_fields import RestoreType

MODES = [
    {"mode": "last-state"},
    {"mode": "savepoint"},
    {"mode": "savepoint", "fallback": "none"},
]

UNDER_WAY = (
    LifecycleState.STARTING,
    LifecycleState.RUNNING,
    LifecycleState.RECOVERING,
    LifecycleState.UPGRADING,
    LifecycleState.ROLLING_BACK,
    LifecycleState.SUSPENDING,
    LifecycleState.DELETING,
)


class AnyHistory(RuleBasedStateMachine):
    """One job, and everything that can befall it."""

    @initialize(mode=st.sampled_from(MODES), rolls_back=st.booleans())
    def apply(self, mode, rolls_back):
        self.images = 1
        self.nonces = 0
        self.cluster = FakeCluster(a_spec(upgrade=mode, rollback={"enabled": rolls_back}))
        self.cluster.settle(rounds=8)
        self.stale = self.cluster.observed()

    @property
    def is_there(self):
        return not self.cluster.is_gone

    # --- the operator, which may die after any write, or look at what was a moment ago ---

    @precondition(lambda self: self.is_there)
    @rule(dies_after=st.none() | st.integers(0, 7))
    def operator_looks(self, dies_after):
        self.cluster.dies_in = dies_after
        with suppress(OperatorDiedError):
            self.cluster.turn()
        self.cluster.dies_in = None

    @precondition(lambda self: self.is_there)
    @rule()
    def operator_looks_into_its_cache(self):
        seen = self.cluster.observed(is_live=False)
        current = self.cluster.status.driver
        report = self.stale.report
        if current is None or report is None or report.attempt != current.attempt:
            report = None
        self.cluster.turn(replace(seen, drivers=self.stale.drivers, report=report))

    @rule()
    def cache_is_filled(self):
        self.stale = self.cluster.observed()

    # --- the users ---

    @rule()
    def user_changes_the_image(self):
        self.images += 1
        self.cluster.edit(image=f"orders:{self.images}")

    @rule()
    def user_names_an_image_that_is_not_there(self):
        self.user_changes_the_image()
        self.cluster.bad_images.add(f"orders:{self.images}")

    @rule()
    def user_breaks_the_specification(self):
        self.cluster.edit(parallelism=-1)

    @rule(parallelism=st.integers(1, 4))
    def user_rescales(self, parallelism):
        self.cluster.edit(parallelism=parallelism)

    @rule(suspend=st.booleans())
    def user_suspends_or_resumes(self, suspend):
        self.cluster.edit(suspend=suspend)

    @rule()
    def user_restarts(self):
        self.nonces += 1
        self.cluster.edit(restartNonce=self.nonces)

    @rule(value=st.sampled_from(["a", "b"]))
    def user_asks_for_a_savepoint(self, value):
        self.cluster.annotation = value

    @rule(value=st.sampled_from(["a", "b"]))
    def user_asks_for_a_checkpoint(self, value):
        self.cluster.checkpoint_annotation = value

    @rule(part=st.sampled_from(Dependent))
    def user_deletes_what_stands_beside_the_driver(self, part):
        self.cluster.dependents.discard(part)

    @precondition(lambda self: self.cluster.storage.places)
    @rule(data=st.data())
    def user_redeploys(self, data):
        self.nonces += 1
        path = data.draw(st.sampled_from(sorted(self.cluster.storage.places)))
        self.cluster.may_drop = True
        self.cluster.edit(redeployNonce=self.nonces, recovery={"path": path})

    @precondition(lambda self: self.cluster.storage.newest > 20)
    @rule()
    def user_deletes(self):
        self.cluster.deleted_at = self.cluster.deleted_at or self.cluster.now

    # --- the world ---

    @rule(rounds=st.integers(1, 6))
    def drivers_go_on(self, rounds):
        for _ in range(rounds):
            self.cluster.drivers_go_on()

    @rule()
    def all_goes_well_for_a_while(self):
        if self.is_there:
            self.cluster.settle(rounds=4)

    @rule(seconds=st.sampled_from([1, 20, 400]))
    def time_passes(self, seconds):
        self.cluster.pass_time(seconds)

    @rule(why=st.sampled_from(["OOMKilled", "Evicted", ""]))
    def driver_dies(self, why):
        self.cluster.driver_dies(why)

    @rule()
    def driver_pod_vanishes(self):
        self.cluster.drivers.clear()

    @rule()
    def lose_node(self):
        self.cluster.lose_node()

    @rule(has_finalizer=st.booleans())
    def a_user_adds_or_removes_a_finalizer_of_pods(self, has_finalizer):
        self.cluster.held_by = ("example.com/hold",) if has_finalizer else ()

    @rule(are_silent=st.booleans())
    def kubelets_fall_silent_or_answer_again(self, are_silent):
        self.cluster.never_ends = are_silent

    @rule(fails=st.booleans())
    def savepoints_begin_to_fail(self, fails):
        self.cluster.fails_savepoints = fails

    # --- the promises ---

    @invariant()
    def there_is_at_most_one_driver_that_is_not_terminating(self):
        """K3: the others were waited for, or are known to be over."""
        assert sum(not driver.pod.is_terminating for driver in self.cluster.drivers) <= 1

    @invariant()
    def no_start_without_state_is_planned(self):
        """K4: this test never sets the mode stateless."""
        point = self.cluster.status.restore_point
        assert point is None or point.type is not RestoreType.NOTHING

    @invariant()
    def what_is_under_way_is_looked_at_again(self):
        """K3: no step waits for an event alone, which may never come."""
        made = self.cluster.planned()
        if self.is_there and made.status.state in UNDER_WAY:
            assert made.actions or made.requeue_at, made.status.state

    @invariant()
    def every_status_is_read_back_as_it_was_written(self):
        """K3."""
        made = self.cluster.planned().status
        assert parse_status(made.model_dump(mode="json", exclude_none=True)) == made

    @invariant()
    def what_is_about_to_be_done_stands_in_the_status(self):
        """K3: intent before effect, with the attempt that it belongs to."""
        made = self.cluster.planned()
        effects = [action for action in made.actions if isinstance(action, Effect)]
        intent = made.status.intent
        assert (intent is None) == (not effects)
        if effects:
            assert intent.action is KINDS[type(effects[0])]
        for action in effects:
            if isinstance(action, CreateDriver):
                assert made.status.driver.pod_name == action.name
                assert made.status.restore_point == action.restore

    @invariant()
    def looking_twice_decides_the_same(self):
        """K3: a plan hangs on nothing but what it was given."""
        assert self.cluster.planned() == self.cluster.planned()

    @invariant()
    def no_restore_point_is_lost(self):
        """K4: whatever has run can be gone on from."""
        status = self.cluster.status
        assert status.deployed is None or status.restore_point is not None

    def teardown(self):
        """Every state has a way out; then nothing is left to do; and deletion ends."""
        cluster = self.cluster
        cluster.bad_images.clear()
        cluster.fails_savepoints = False
        cluster.remove_finalizer()
        self.user_changes_the_image()
        cluster.edit(suspend=False, parallelism=3)
        if cluster.deleted_at is None:
            cluster.settle_until(LifecycleState.STABLE)
            cluster.turn()
            self._nothing_is_left_to_do()
        cluster.deleted_at = cluster.deleted_at or cluster.now
        cluster.settle_until(LifecycleState.DELETING)
        cluster.settle(rounds=20)
        assert cluster.is_gone, "the deletion ended"

    def _nothing_is_left_to_do(self):
        """K3: planning what was reached does nothing."""
        cluster = self.cluster
        made = cluster.turn()
        again = cluster.planned()
        reported = [action for action in made.actions if not isinstance(action, EmitEvent)]
        assert again.actions == (), reported
        assert again.status == cluster.status


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
