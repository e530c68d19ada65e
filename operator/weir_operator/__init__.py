"""The Kubernetes operator: keeps a cluster as its checkpointed jobs say it should be.

Of the runtime it knows the shared words, ``weir.api`` and ``weir.errors``, and no more: it needs
neither Spark nor Arrow, and its image carries no JVM. Decisions stand in ``weir_operator.plan``.
"""

from weir.extras import require_extra

require_extra("operator", "The operator", "kopf", "kubernetes_asyncio")
