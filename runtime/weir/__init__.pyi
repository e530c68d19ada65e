from weir.cli.client import Client as Client
from weir.cli.job_lookup import running_jobs as running_jobs
from weir.connectors.file_sink import read_committed as read_committed
from weir.core.lifecycle import JobStatus as JobStatus
from weir.dataflow import functions as functions
from weir.dataflow.process_functions import BroadcastProcessFunction as BroadcastProcessFunction
from weir.dataflow.process_functions import BroadcastState as BroadcastState
from weir.dataflow.process_functions import ListState as ListState
from weir.dataflow.process_functions import ProcessFunction as ProcessFunction
from weir.dataflow.process_functions import StateHandle as StateHandle
from weir.dataflow.stream import Stream as Stream
from weir.errors import JobRejected as JobRejected
from weir.errors import Unavailable as Unavailable
from weir.errors import WeirError as WeirError
from weir.extras import MissingExtra as MissingExtra
from weir.rest.checkpoint_statistics import CheckpointStatistics as CheckpointStatistics
from weir.spark import JobFailed as JobFailed
from weir.spark import StreamingJob as StreamingJob
from weir.spark import WeirSession as WeirSession
from weir.spark.bootstrap import Savepoint as Savepoint

__version__: str
