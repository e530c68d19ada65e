"""Names every environment variable of Weir, for the code that sets it and the code that reads it.

``weir run`` and the operator set variables for a driver, which reads them; the operator reads its
settings from variables too. No other module spells such a name out, so a search for a constant
finds every reader and every writer. How a value is read is not decided here.
"""

from typing import Final

# --- the job and its driver, set by the operator --------------------------------------------------

WEIR_JOB: Final = "WEIR_JOB"
"""The job's directory below the checkpoint storage; without it, the script names the job."""

WEIR_ATTEMPT: Final = "WEIR_ATTEMPT"
"""The number of this driver, as the operator counts; set only for a job that an operator owns."""

WEIR_DEPLOYMENT: Final = "WEIR_DEPLOYMENT"
"""The submission that the driver belongs to; drivers of one submission replace each other."""

WEIR_CONFIG: Final = "WEIR_CONFIG"
"""A file with the job's whole configuration as JSON, in place of the script's settings."""

WEIR_TERMINATION_LOG: Final = "WEIR_TERMINATION_LOG"
"""The file in which a driver that ends leaves its report."""

WEIR_NAMESPACE: Final = "WEIR_NAMESPACE"
"""The namespace of the driver's pod, for the user's script and Spark settings (``${env:…}``)."""

# --- what a job starts from, set by `weir run` and the operator -----------------------------------

WEIR_FROM: Final = "WEIR_FROM"
"""The checkpoint or savepoint to start from."""

WEIR_FRESH: Final = "WEIR_FRESH"
"""``true``: start without state."""

WEIR_LOWEST_CHECKPOINT: Final = "WEIR_LOWEST_CHECKPOINT"
"""The oldest checkpoint that the driver may start from, by its number."""

WEIR_CLAIM: Final = "WEIR_CLAIM"
"""``true``: the job owns the savepoint that it starts from, and deletes it in time."""

WEIR_ALLOW_NON_RESTORED_STATE: Final = "WEIR_ALLOW_NON_RESTORED_STATE"
"""``true``: state of operators that the job no longer has may be lost."""

WEIR_TAKE_OVER: Final = "WEIR_TAKE_OVER"
"""``true``: replace a driver of another submission while it runs."""

WEIR_RERUN: Final = "WEIR_RERUN"
"""``true``: run a job again that has finished."""

WEIR_PARALLELISM: Final = "WEIR_PARALLELISM"
"""The parallelism of the job, in place of the script's."""

# --- machines and addresses -----------------------------------------------------------------------

WEIR_MASTER: Final = "WEIR_MASTER"
"""Spark's master, as in ``k8s://https://kubernetes.default.svc``; without it, this machine."""

WEIR_HOST: Final = "WEIR_HOST"
"""The address by which other machines reach this driver; without it, all slots are on this one."""

WEIR_PORT: Final = "WEIR_PORT"
"""The port of the job's API; without it, any free port."""

WEIR_LOCAL_DIR: Final = "WEIR_LOCAL_DIR"
"""The directory for executors' local copies of state; without it, the temporary directory."""

WEIR_URL: Final = "WEIR_URL"
"""The API of the job that a command of ``weir`` is for."""

# --- secrets --------------------------------------------------------------------------------------

WEIR_TOKEN: Final = "WEIR_TOKEN"  # noqa: S105 - the name of the variable that holds it
"""The bearer token of the job's API, for the driver and for commands of ``weir``."""

WEIR_SECRET: Final = "WEIR_SECRET"  # noqa: S105 - the name of the variable that holds it
"""The secret from which the job's key for signing pickles is made."""

# --- debugging ------------------------------------------------------------------------------------

WEIR_TRACE: Final = "WEIR_TRACE"
"""A directory in which drivers record their events and actions."""

# --- the operator's settings, one for each of its flags -------------------------------------------

WEIR_OPERATOR_KUBECONFIG: Final = "WEIR_OPERATOR_KUBECONFIG"
"""The kubeconfig file; without it, the cluster that the operator runs in."""

WEIR_OPERATOR_NAMESPACES: Final = "WEIR_OPERATOR_NAMESPACES"
"""The namespaces to watch, separated by commas; without it, the whole cluster."""

WEIR_OPERATOR_OWN_NAMESPACE: Final = "WEIR_OPERATOR_OWN_NAMESPACE"
"""The namespace of the operator's Lease."""

WEIR_OPERATOR_IDENTITY: Final = "WEIR_OPERATOR_IDENTITY"
"""The holder's name in the Lease."""

WEIR_OPERATOR_LEASE: Final = "WEIR_OPERATOR_LEASE"
"""The name of the Lease."""

WEIR_OPERATOR_DRIVER_PORT: Final = "WEIR_OPERATOR_DRIVER_PORT"
"""The port of the drivers' APIs."""

WEIR_OPERATOR_DRIVER_PEERS: Final = "WEIR_OPERATOR_DRIVER_PEERS"
"""A JSON list of the NetworkPolicy peers that reach the drivers' APIs."""

WEIR_OPERATOR_HEALTH_PORT: Final = "WEIR_OPERATOR_HEALTH_PORT"
"""The port of ``/healthz`` and ``/readyz``."""

WEIR_OPERATOR_METRICS_PORT: Final = "WEIR_OPERATOR_METRICS_PORT"
"""The port of ``/metrics``."""

WEIR_OPERATOR_LOST_AFTER: Final = "WEIR_OPERATOR_LOST_AFTER"
"""The seconds until a node that is not ready counts as lost."""

WEIR_OPERATOR_LOG_LEVEL: Final = "WEIR_OPERATOR_LOG_LEVEL"
"""``DEBUG``, ``INFO`` or ``WARNING``."""

WEIR_OPERATOR_LOG_FORMAT: Final = "WEIR_OPERATOR_LOG_FORMAT"
"""``json`` or ``text``."""
