"""The Kubernetes operator: reconciles CheckpointedJobs and CheckpointedJobSnapshots.

Of the runtime it imports ``weir.api`` and ``weir.errors`` only: it needs neither Spark nor Arrow,
and its image needs no JVM. All decisions are in ``weir_operator.plan``.
"""

from weir.extras import require_extra

require_extra("operator", "The operator", "kopf", "kubernetes_asyncio")
