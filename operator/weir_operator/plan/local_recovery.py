"""Decides whether executors may keep a second copy of their state on a local disk (spec K8).

A local copy saves the download after a failure, but only if the disk is still there when the next
pod starts. A volume that dies with its pod would cost a second write per checkpoint and give
nothing back, and a network volume would give back no more than the checkpoint storage does. So
local recovery is on for a node's own disk alone, and otherwise off with a reason for the status.

A driver is told once, when it is made. A claim that waits for its first pod is bound only after
that, so what holds now may differ from what was decided: then the status says both.

Rule: what we could not see is off. This module looks nothing up; the claim that a pod mounts
arrives here together with what was learned about the volume behind it.
"""

from dataclasses import dataclass
from typing import assert_never

from weir_operator.resource.status_fields import LocalRecoveryStatus

REMEDY = "use a hostPath or a claim on a local PersistentVolume"


@dataclass(frozen=True, slots=True)
class NoVolume:
    """The executors mount nothing to keep copies on."""


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
class BoundUnseen:
    """The claim is bound, but we may not read the PersistentVolume, or it vanished as we looked."""

    persistent_volume: str


@dataclass(frozen=True, slots=True)
class BoundTo:
    """The claim is bound to a PersistentVolume of a known kind, such as ``local`` or ``csi``."""

    persistent_volume: str
    kind: str


Binding = ClaimMissing | ClaimPending | ClaimLost | BoundUnseen | BoundTo


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim, resolved as far as we could see."""

    volume: str
    name: str
    binding: Binding


LocalVolume = NoVolume | HostPath | EmptyDir | EphemeralClaim | OtherVolume | Claim


@dataclass(frozen=True, slots=True)
class On:
    """The local volume outlives its pod: keep copies there, and look there first on restore."""

    where: str


@dataclass(frozen=True, slots=True)
class Off:
    """State is restored from the checkpoint storage only; the status shows the reason."""

    reason: str


LocalRecovery = On | Off


def decide(volume: LocalVolume) -> LocalRecoveryStatus:
    """For a driver that is made now."""
    found = resolve(volume)
    if isinstance(found, On):
        return LocalRecoveryStatus(enabled=True, reason=found.where)
    return LocalRecoveryStatus(enabled=False, reason=found.reason)


def retell(decided: LocalRecoveryStatus, driver: str, volume: LocalVolume) -> LocalRecoveryStatus:
    """What was decided for a driver that is there, with what has become of its volume since."""
    now = decide(volume)
    if now.enabled is decided.enabled:
        return now
    if now.enabled:
        reason = (
            f"{driver} was made before the volume was ready and keeps no copies; now {now.reason},"
            " and the next driver keeps them: set another restartNonce to have it at once"
        )
    else:
        reason = f"{driver} keeps copies, but the next driver will not: {now.reason}"
    return LocalRecoveryStatus(enabled=decided.enabled, reason=reason)


def resolve(volume: LocalVolume) -> LocalRecovery:
    match volume:
        case HostPath(name, path):
            return On(f"volume {name!r} is the directory {path} of the node")
        case Claim():
            return _resolve_claim(volume)
        case NoVolume():
            return Off(f"the executors mount no local volume; {REMEDY}")
        case EmptyDir(name):
            return Off(f"volume {name!r} is an emptyDir, which is deleted with its pod; {REMEDY}")
        case EphemeralClaim(name):
            return Off(
                f"volume {name!r} is an ephemeral claim, which is deleted with its pod; {REMEDY}"
            )
        case OtherVolume(name, kind):
            return Off(f"volume {name!r} is of kind {kind}, not a disk of the node; {REMEDY}")
        case _:
            assert_never(volume)


def _resolve_claim(claim: Claim) -> LocalRecovery:
    it = f"volume {claim.volume!r} claims {claim.name!r}, which"
    match claim.binding:
        # A hostPath behind a claim is the node's disk just the same; small clusters provision so.
        case BoundTo(name, "local" | "hostPath" as kind):
            return On(f"{it} is bound to PersistentVolume {name!r} of kind {kind}")
        case BoundTo(name, kind):
            return Off(
                f"{it} is bound to PersistentVolume {name!r} of kind {kind}, not known to be a disk"
                f" of the node; {REMEDY}"
            )
        case BoundUnseen(name):
            return Off(
                f"{it} is bound to PersistentVolume {name!r}, which the operator cannot read; allow"
                " it to get persistentvolumes"
            )
        case ClaimPending():
            return Off(
                f"{it} is not bound to a PersistentVolume yet; the first driver that is made after"
                " it was bound keeps copies"
            )
        case ClaimLost():
            return Off(f"{it} has lost its PersistentVolume; make the claim anew")
        case ClaimMissing():
            return Off(f"{it} does not exist; create the claim, or {REMEDY}")
        case _:
            assert_never(claim.binding)
