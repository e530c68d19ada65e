"""Explains in one sentence why a checkpoint failed, and names its slowest subtask (spec C10).

"Checkpoint expired" alone does not help to find the cause. The message names the slowest subtask,
its phase and the bytes it has written, from what the coordinator already knows.
"""

from weir.core.coordinator.events import Phase, SubtaskAcked
from weir.core.coordinator.pending_checkpoint import (
    Collected,
    Collecting,
    Logging,
    Pending,
    Persisting,
    Preparing,
)
from weir.core.ids import Millis, SubtaskId
from weir.core.reasons import Reason

_ORDER = {phase: rank for rank, phase in enumerate(Phase)}


def explain(pending: Pending, reason: Reason, cause: str, now: Millis) -> str:
    failure = reason.value if not cause else f"{reason.value}: {cause}"
    return f"{failure}; {_slowest(pending, now)}"


def _slowest(pending: Pending, now: Millis) -> str:
    waited = now - pending.properties.started_at
    match pending:
        case Collecting() if pending.awaiting:
            subtask, phase = _furthest_behind(pending)
            moved = sum(ack.snapshot.bytes for ack in pending.acks.values())
            return (
                f"slowest subtask {subtask} is {phase} after {waited} ms, "
                f"{len(pending.acks)} of {len(pending.properties.plan.wait_for)} acked "
                f"with {moved} bytes"
            )
        case Collecting() | Collected() | Persisting() | Logging():
            ack = max(pending.acks.values(), key=lambda ack: (duration(ack), ack.subtask))
            return (
                f"slowest subtask {ack.subtask} {Phase.ACKED} after {duration(ack)} ms "
                f"with {ack.snapshot.bytes} bytes"
            )
        case Preparing():
            waiting = ", ".join(sorted(pending.operators)) or "its place in storage"
            return f"no barrier was sent after {waited} ms, waiting for {waiting}"


def duration(ack: SubtaskAcked) -> int:
    t = ack.timings
    return t.start_delay_ms + t.alignment_ms + t.sync_ms + t.async_ms


def _furthest_behind(pending: Collecting) -> tuple[SubtaskId, Phase]:
    return min(
        ((s, pending.phases.get(s, Phase.WAITING)) for s in sorted(pending.awaiting)),
        key=lambda found: _ORDER[found[1]],
    )
