"""The columns that files of keyed state have beside the key and the user's fields.

Every name has a dot, so that none can be a key column's.
"""

import pyarrow as pa

from weir.ports.keyed_state import Rows

VALUE, LIST, MAP, TIMER, ROWS = "value", "list", "map", "timers", "rows"
"""The kinds of state."""

ORDINAL = pa.field("state.ordinal", pa.int64(), nullable=False)
EXPIRES_AT = pa.field("state.expires_at", pa.int64())
TIMER_FIELDS = (
    pa.field("timer.expires_at", pa.int64(), nullable=False),
    pa.field("timer.time", pa.string(), nullable=False),
)


def prefixed(prefix: str, rows: Rows) -> tuple[pa.Field, ...]:
    """The fields as columns of a file, out of the way of the key columns."""
    return tuple(field.with_name(f"{prefix}.{field.name}") for field in rows.schema)
