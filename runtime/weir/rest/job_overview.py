"""The API's models of a job and its graph."""

from weir.rest.body import Body


class Slots(Body):
    """The processes that host the job's subtasks."""

    registered: int
    missing: int
    """How many more the job waits for."""


class Overview(Body):
    """A job at a glance."""

    name: str
    status: str
    """CREATED, WAITING_FOR_SLOTS, DEPLOYING, RUNNING, RESTARTING, FINISHED, STOPPED, CANCELED,
    FAILED."""
    is_over: bool
    """Whether that status is the last one."""
    parallelism: int
    directory: str
    """Where the job keeps everything it stores."""
    slots: Slots
    restarts: int
    last_failure: str
    """Why the job restarted last; empty if it never did."""


class Subtask(Body):
    """The state of one subtask. Counts start again when it is launched."""

    index: int
    slot: str
    rows_in: int
    rows_out: int
    busy_ms: int
    is_back_pressured: bool
    watermark: int | None
    """Event time in milliseconds; none before the first and after the last."""
    late_rows: int = 0
    """Dropped, because the watermark had passed them."""


class Operator(Body):
    """One step of the dataflow."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int
    steps: tuple[str, ...]
    """What is folded into it, in order."""
    subtasks: tuple[Subtask, ...]
    """Those that a slot has spoken about."""


class Edge(Body):
    """A stream between two operators."""

    id: str
    source: str
    target: str
    kind: str
    """How rows are spread: forward, hash, rebalance, rescale, broadcast, global."""


class Graph(Body):
    """The job as it runs."""

    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...]
