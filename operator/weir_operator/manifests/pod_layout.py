"""Where things lie inside the pods of a job, and at which ports its driver is reached.

Whoever writes a path into a variable and whoever mounts something there read it here, so that they
cannot disagree.
"""

CONFIG_DIRECTORY = "/etc/weir"
JOB_FILE = "job.json"
SPARK_FILE = "spark-defaults.conf"
EXECUTOR_FILE = "executor.yaml"

PROGRAM_DIRECTORY = "/etc/job"
TLS_DIRECTORY = "/etc/weir-tls"
LOCAL_DIRECTORY = "/var/lib/weir-local"
"""Where executors see the volume for local copies of state, if the user mounts it nowhere."""

SPARK_CLASSES = "/opt/spark/jars/classes.jar"
SPARK_ARCHIVE = "/opt/spark/classes.jsa"
"""Spark's jars as one class path, and its classes as Java takes them without reading any jar. They
are in our image; in another one both are passed over."""

TERMINATION_LOG = "/dev/termination-log"

SPARK_PORT = 7078
BLOCKS_PORT = 7079
API_PORT = 8081

PORTS = {"spark": SPARK_PORT, "blocks": BLOCKS_PORT, "api": API_PORT}
"""The ports of a driver that have a name. Slots are told another one when they start."""
