"""Weir on Spark: slots as tasks of one long Spark job, and the session that users begin with.

Only here, in ``weir.daemon`` and in the connectors' PySpark adapters is pyspark imported.
"""

from weir.spark.job import JobFailed, StreamingJob
from weir.spark.session import WeirSession

__all__ = ["JobFailed", "StreamingJob", "WeirSession"]
