"""K8: local recovery is on only where the executor's volume is the node's own disk."""

import pytest

from weir_operator.plan.local_recovery import (
    Binding,
    BoundTo,
    BoundUnseen,
    Claim,
    ClaimLost,
    ClaimMissing,
    ClaimPending,
    EmptyDir,
    EphemeralClaim,
    HostPath,
    LocalVolume,
    NoVolume,
    Off,
    On,
    OtherVolume,
    resolve,
)


def a_claim(binding: Binding) -> Claim:
    return Claim("copies", "orders-copies", binding)


def reason_for(volume: LocalVolume) -> str:
    decided = resolve(volume)
    assert isinstance(decided, Off)
    return decided.reason


def test_a_directory_of_the_node_turns_it_on():
    """K8."""
    assert resolve(HostPath("copies", "/mnt/disks/0")) == On()


@pytest.mark.parametrize("kind", ["local", "hostPath"])
def test_a_claim_on_the_nodes_own_disk_turns_it_on(kind):
    """K8."""
    assert resolve(a_claim(BoundTo("pv-7", kind))) == On()


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
        (ClaimPending(), "is not bound to a PersistentVolume yet"),
        (ClaimLost(), "has lost its PersistentVolume; make the claim anew"),
        (
            ClaimMissing(),
            (
                "does not exist; create the claim, or use a hostPath or a claim on a local"
                " PersistentVolume"
            ),
        ),
        (
            BoundUnseen("pv-7"),
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
