"""Compares two snapshots: operators, parallelism, schemas, rows and sizes (spec U2).

Rows are counted and not compared: two savepoints of one job differ in nearly every row.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from weir.storage.inspection import (
    Description,
    KeyedDescription,
    OperatorDescription,
    refuse_native,
)

ABSENT = "–"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same in both."""

    operator: str
    state: str
    """Empty where the operator itself differs."""
    what: str
    before: str
    after: str


def differences(before: Description, after: Description) -> tuple[Difference, ...]:
    refuse_native((*before.operators, *after.operators))
    old, new = before.by_uid, after.by_uid
    found: list[Difference] = []
    for uid in [*old, *(uid for uid in new if uid not in old)]:
        if uid not in new:
            found.append(Difference(uid, "", "operator", "present", ABSENT))
        elif uid not in old:
            found.append(Difference(uid, "", "operator", ABSENT, "present"))
        else:
            found += _in_operator(old[uid], new[uid])
    return tuple(found)


def _in_operator(old: OperatorDescription, new: OperatorDescription) -> Iterator[Difference]:
    for what, before, after in (
        ("parallelism", old.parallelism, new.parallelism),
        ("max parallelism", old.max_parallelism, new.max_parallelism),
        ("open transactions", len(old.transactions), len(new.transactions)),
    ):
        if before != after:
            yield Difference(old.uid, "", what, str(before), str(after))
    was = {state.name: state for state in old.keyed}
    now = {state.name: state for state in new.keyed}
    for name in [*was, *(name for name in now if name not in was)]:
        yield from _in_state(old.uid, was.get(name), now.get(name))


def _in_state(
    uid: str, old: KeyedDescription | None, new: KeyedDescription | None
) -> Iterator[Difference]:
    if old is None or new is None:
        state = old or new
        assert state is not None, "a state is in one of the two"
        words = [ABSENT if side is None else f"{side.kind} state" for side in (old, new)]
        yield Difference(uid, state.name, "state", *words)
        return
    for what, before, after in (
        ("kind", old.kind, new.kind),
        ("rows", str(old.rows), str(new.rows)),
        ("bytes", str(old.bytes), str(new.bytes)),
    ):
        if before != after:
            yield Difference(uid, old.name, what, before, after)
    was, now = types_of(old), types_of(new)
    for column in [*was, *(column for column in now if column not in was)]:
        if was.get(column) != now.get(column):
            pair = was.get(column, ABSENT), now.get(column, ABSENT)
            yield Difference(uid, old.name, f"column {column}", *pair)


def types_of(state: KeyedDescription) -> dict[str, str]:
    """The columns of a state and their types, without the key group, which all have."""
    return {field.name: str(field.type) for field in list(state.schema)[1:]}
