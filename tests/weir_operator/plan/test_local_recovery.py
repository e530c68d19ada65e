"""K8: local recovery is on only where the executor's volume is the node's own disk.

What was decided when a driver was made holds for as long as that driver, whatever becomes of its
volume meanwhile; the condition speaks of it, and of the next one if that will do otherwise.
"""

import pytest

from fake_cluster import FakeCluster, a_spec
from weir_operator.plan.cluster_actions import CreateDriver, EnsureDependent
from weir_operator.plan.local_recovery import (
    Binding,
    BoundTo,
    BoundUnreadable,
    Claim,
    ClaimLost,
    ClaimMissing,
    ClaimPending,
    Disabled,
    EmptyDir,
    Enabled,
    EphemeralClaim,
    HostPath,
    LocalVolume,
    NoVolume,
    OtherVolume,
    resolve,
)
from weir_operator.plan.observed_state import Dependent

ON_THE_NODE = HostPath("copies", "/mnt/disks/0")


def a_claim(binding: Binding) -> Claim:
    return Claim("copies", "orders-copies", binding)


def reason_for(volume: LocalVolume) -> str:
    decided = resolve(volume)
    assert isinstance(decided, Disabled)
    return decided.reason


def test_a_directory_of_the_node_turns_it_on():
    """K8."""
    assert resolve(ON_THE_NODE) == Enabled(
        "volume 'copies' is the directory /mnt/disks/0 of the node"
    )


@pytest.mark.parametrize("kind", ["local", "hostPath"])
def test_a_claim_on_the_nodes_own_disk_turns_it_on(kind):
    """K8."""
    assert resolve(a_claim(BoundTo("pv-7", kind))) == Enabled(
        "volume 'copies' claims 'orders-copies', which is bound to PersistentVolume 'pv-7' of kind"
        f" {kind}"
    )


@pytest.mark.parametrize("kind", ["csi", "nfs", "iscsi", "rbd", "awsElasticBlockStore", "Local"])
def test_a_claim_on_any_other_kind_leaves_it_off_and_names_volume_and_kind(kind):
    """K8."""
    assert reason_for(a_claim(BoundTo("pv-7", kind))) == (
        "volume 'copies' claims 'orders-copies', which is bound to PersistentVolume 'pv-7' of kind"
        f" {kind}, not known to be a disk of the node; use a hostPath or a claim on a local"
        " PersistentVolume"
    )


@pytest.mark.parametrize(
    ("volume", "reason"),
    [
        (NoVolume(), "the executors mount no local volume"),
        (EmptyDir("scratch"), "volume 'scratch' is an emptyDir, which is deleted with its pod"),
        (
            EphemeralClaim("scratch"),
            "volume 'scratch' is an ephemeral claim, which is deleted with its pod",
        ),
        (OtherVolume("share", "nfs"), "volume 'share' is of kind nfs, not a disk of the node"),
    ],
)
def test_a_volume_that_does_not_outlive_its_pod_leaves_it_off_and_says_what_would_do(
    volume, reason
):
    """K8."""
    remedy = "use a hostPath or a claim on a local PersistentVolume"
    assert reason_for(volume) == f"{reason}; {remedy}"


@pytest.mark.parametrize(
    ("binding", "reason"),
    [
        (
            ClaimPending(),
            (
                "is not bound to a PersistentVolume yet; the first driver that is created after it"
                " was bound keeps copies"
            ),
        ),
        (ClaimLost(), "has lost its PersistentVolume; create the claim again"),
        (
            ClaimMissing(),
            (
                "does not exist; create the claim, or use a hostPath or a claim on a local"
                " PersistentVolume"
            ),
        ),
        (
            BoundUnreadable("pv-7"),
            (
                "is bound to PersistentVolume 'pv-7', which the operator cannot read; allow it to"
                " get persistentvolumes"
            ),
        ),
    ],
)
def test_a_claim_whose_disk_we_cannot_see_leaves_it_off_and_says_why(binding, reason):
    """K8."""
    assert reason_for(a_claim(binding)) == (
        f"volume 'copies' claims 'orders-copies', which {reason}"
    )


PENDING, BOUND = a_claim(ClaimPending()), a_claim(BoundTo("pv-7", "local"))


def a_running_job(volume, **changes):
    given = {"state": {"localRecovery": True}} | changes
    cluster = FakeCluster(a_spec(**given), local_volume=volume)
    cluster.settle(rounds=12)
    return cluster


def condition(cluster):
    return next((one for one in cluster.status.conditions if one.type == "LocalRecovery"), None)


def kept_by_what_is_made(cluster):
    """Whether copies are kept by all that the next look makes for a driver."""
    made = [a for a in cluster.planned().actions if isinstance(a, EnsureDependent | CreateDriver)]
    assert made
    return {action.local_recovery for action in made}


def test_a_condition_says_on_which_volume_copies_are_kept():
    """K7 K8."""
    found = condition(a_running_job(BOUND))

    assert (found.status, found.reason) == ("True", "PersistentLocalVolume")
    assert found.message.endswith("is bound to PersistentVolume 'pv-7' of kind local")


def test_a_condition_says_why_no_copies_are_kept_if_the_user_wants_copies():
    """K7 K8."""
    found = condition(a_running_job(NoVolume()))

    assert (found.status, found.reason) == ("False", "NoPersistentLocalVolume")
    assert "mount no local volume" in found.message
    assert condition(a_running_job(BOUND, state={})) is None


def test_a_claim_that_is_bound_after_its_driver_was_made_waits_for_the_next_one():
    """K7 K8: as local volumes usually are, by the first pod that has them."""
    cluster = a_running_job(PENDING)
    assert "is not bound to a PersistentVolume yet" in condition(cluster).message

    cluster.local_volume = BOUND
    cluster.settle(rounds=2)

    found = condition(cluster)
    assert found.status == "False"
    assert "orders-driver-1 was created before" in found.message
    assert "PersistentVolume 'pv-7'" in found.message
    assert "change restartNonce" in found.message

    cluster.edit(restartNonce=1)
    cluster.settle(rounds=12)

    assert cluster.status.driver.attempt == 2
    assert condition(cluster).status == "True"


def test_a_volume_that_is_lost_changes_nothing_for_the_driver_that_is_there():
    """K7 K8: and the condition says that the next one will do without."""
    cluster = a_running_job(BOUND)
    cluster.local_volume = a_claim(ClaimLost())
    cluster.settle(rounds=2)

    found = condition(cluster)
    assert found.status == "True"
    assert "the next driver will not" in found.message
    assert "has lost its PersistentVolume" in found.message


@pytest.mark.parametrize(
    ("at_first", "later", "is_kept"), [(PENDING, BOUND, False), (BOUND, PENDING, True)]
)
def test_what_is_made_again_for_a_driver_is_what_was_decided_for_it(at_first, later, is_kept):
    """K3 K8: the ConfigMap of an attempt is always the same."""
    cluster = a_running_job(at_first)
    cluster.local_volume = later
    cluster.dependents.remove(Dependent.CONFIG)

    assert kept_by_what_is_made(cluster) == {is_kept}


def test_a_crash_before_the_driver_is_made_changes_nothing_of_what_was_decided():
    """K3 K8: it was written down with the attempt."""
    cluster = FakeCluster(a_spec(state={"localRecovery": True}), local_volume=PENDING)
    cluster.status = cluster.planned().status
    cluster.local_volume = BOUND

    assert kept_by_what_is_made(cluster) == {False}


def test_an_older_version_that_goes_on_is_not_judged_by_the_volume_of_a_newer_one():
    """K6 K8: an upgrade was given up, and then the driver is lost."""
    cluster = a_running_job(BOUND, upgrade={"mode": "savepoint", "fallback": "none"})
    cluster.fails_savepoints = True
    cluster.edit(image="orders:2")
    cluster.local_volume = EmptyDir("scratch")
    cluster.settle(rounds=20)
    assert condition(cluster).message.endswith("'pv-7' of kind local")

    cluster.driver_dies()
    cluster.settle(rounds=10)

    assert cluster.status.driver.attempt == 2
    assert condition(cluster).message.endswith("'pv-7' of kind local")


def test_the_condition_of_a_suspended_job_shows_the_current_decision():
    """K7 K8: before anything runs."""
    cluster = a_running_job(PENDING)
    cluster.edit(suspend=True)
    cluster.local_volume = BOUND
    cluster.settle(rounds=6)

    assert condition(cluster).status == "True"


def test_local_copies_are_kept_only_where_they_were_asked_for():
    """K8: a disk of the node that happens to be mounted is no wish."""
    cluster = FakeCluster(local_volume=ON_THE_NODE)

    assert kept_by_what_is_made(cluster) == {False}
