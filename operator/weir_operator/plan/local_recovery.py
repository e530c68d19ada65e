"""Decides whether executors may keep a second copy of their state on a local disk (spec K8).

A local copy saves the download after a failure, but only if the disk still exists when the next pod
starts. A volume that is deleted with its pod would cost a second write per checkpoint without any
benefit, and a network volume is no faster than the checkpoint storage. So local recovery is enabled
for a disk of the node only, and otherwise disabled with a reason in the status.

The decision is made when a driver is created. A claim that waits for its first consumer is bound
only after that, so the current state may differ from the decision: then the status shows both.

Rule: unknown means disabled. This module reads nothing; the claim that a pod mounts arrives here
together with what is known about its volume.
"""

from dataclasses import dataclass
from typing import assert_never

from weir_operator.resource.status_fields import LocalRecoveryStatus

REMEDY = "use a hostPath or a claim on a local PersistentVolume"


@dataclass(frozen=True, slots=True)
class NoVolume:
    """The executors mount no volume for copies."""


@dataclass(frozen=True, slots=True)
class HostPath:
    """A directory of the node."""

    volume: str
    path: str


@dataclass(frozen=True, slots=True)
class EmptyDir:
    """Scratch space that is deleted with its pod."""

    volume: str


@dataclass(frozen=True, slots=True)
class EphemeralClaim:
    """A claim made for one pod from a template, and deleted with it."""

    volume: str


@dataclass(frozen=True, slots=True)
class OtherVolume:
    """Any other kind that a pod can mount, by the name of its field, such as ``nfs``."""

    volume: str
    kind: str


@dataclass(frozen=True, slots=True)
class ClaimMissing:
    """The namespace has no claim of that name."""


@dataclass(frozen=True, slots=True)
class ClaimPending:
    """No PersistentVolume is bound to the claim yet."""


@dataclass(frozen=True, slots=True)
class ClaimLost:
    """The PersistentVolume that was bound to the claim is gone."""


@dataclass(frozen=True, slots=True)
class BoundUnreadable:
    """The claim is bound, but the PersistentVolume cannot be read or no longer exists."""

    persistent_volume: str


@dataclass(frozen=True, slots=True)
class BoundTo:
    """The claim is bound to a PersistentVolume of a known kind, such as ``local`` or ``csi``."""

    persistent_volume: str
    kind: str


Binding = ClaimMissing | ClaimPending | ClaimLost | BoundUnreadable | BoundTo


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim and its binding, as far as it is known."""

    volume: str
    name: str
    binding: Binding


LocalVolume = NoVolume | HostPath | EmptyDir | EphemeralClaim | OtherVolume | Claim


@dataclass(frozen=True, slots=True)
class Enabled:
    """The local volume outlives its pod: keep copies there, and restore from them first."""

    where: str


@dataclass(frozen=True, slots=True)
class Disabled:
    """State is restored from the checkpoint storage only; the status shows the reason."""

    reason: str


LocalRecovery = Enabled | Disabled


def decide(volume: LocalVolume) -> LocalRecoveryStatus:
    """For a driver that is created now."""
    found = resolve(volume)
    if isinstance(found, Enabled):
        return LocalRecoveryStatus(enabled=True, reason=found.where)
    return LocalRecoveryStatus(enabled=False, reason=found.reason)


def revised(decided: LocalRecoveryStatus, driver: str, volume: LocalVolume) -> LocalRecoveryStatus:
    """The decision for a running driver, with the changes of its volume since."""
    now = decide(volume)
    if now.enabled is decided.enabled:
        return now
    if now.enabled:
        reason = (
            f"{driver} was created before the volume was ready and keeps no copies; now"
            f" {now.reason}, and the next driver keeps them: change restartNonce to restart it now"
        )
    else:
        reason = f"{driver} keeps copies, but the next driver will not: {now.reason}"
    return LocalRecoveryStatus(enabled=decided.enabled, reason=reason)


def resolve(volume: LocalVolume) -> LocalRecovery:
    match volume:
        case HostPath(name, path):
            return Enabled(f"volume {name!r} is the directory {path} of the node")
        case Claim():
            return _resolve_claim(volume)
        case NoVolume():
            return Disabled(f"the executors mount no local volume; {REMEDY}")
        case EmptyDir(name):
            return Disabled(
                f"volume {name!r} is an emptyDir, which is deleted with its pod; {REMEDY}"
            )
        case EphemeralClaim(name):
            return Disabled(
                f"volume {name!r} is an ephemeral claim, which is deleted with its pod; {REMEDY}"
            )
        case OtherVolume(name, kind):
            return Disabled(f"volume {name!r} is of kind {kind}, not a disk of the node; {REMEDY}")
        case _:
            assert_never(volume)


def _resolve_claim(claim: Claim) -> LocalRecovery:
    it = f"volume {claim.volume!r} claims {claim.name!r}, which"
    match claim.binding:
        # A hostPath behind a claim is a disk of the node too, as in small clusters.
        case BoundTo(name, "local" | "hostPath" as kind):
            return Enabled(f"{it} is bound to PersistentVolume {name!r} of kind {kind}")
        case BoundTo(name, kind):
            return Disabled(
                f"{it} is bound to PersistentVolume {name!r} of kind {kind}, not known to be a disk"
                f" of the node; {REMEDY}"
            )
        case BoundUnreadable(name):
            return Disabled(
                f"{it} is bound to PersistentVolume {name!r}, which the operator cannot read; allow"
                " it to get persistentvolumes"
            )
        case ClaimPending():
            return Disabled(
                f"{it} is not bound to a PersistentVolume yet; the first driver that is created"
                " after it was bound keeps copies"
            )
        case ClaimLost():
            return Disabled(f"{it} has lost its PersistentVolume; create the claim again")
        case ClaimMissing():
            return Disabled(f"{it} does not exist; create the claim, or {REMEDY}")
        case _:
            assert_never(claim.binding)
