"""Weir on Spark: slots as tasks of one long Spark job, and the session that users begin with.

Only here, in ``weir.daemon`` and in the connectors' PySpark adapters is pyspark imported.
"""

from weir.extras import require_extra

require_extra("spark", "A job", "polars", "pyspark")

from weir.spark.session import WeirSession  # noqa: E402
from weir.spark.streaming_job import JobFailed, StreamingJob  # noqa: E402 - after the check

__all__ = ["JobFailed", "StreamingJob", "WeirSession"]
