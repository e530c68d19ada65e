"""Paths inside the pods of a job, and the ports of its driver.

Variables and mounts use the same constants, so that they always agree.
"""

CONFIG_DIRECTORY = "/etc/weir"
JOB_FILE = "job.json"
SPARK_FILE = "spark-defaults.conf"
EXECUTOR_FILE = "executor.yaml"

PROGRAM_DIRECTORY = "/etc/job"
TLS_DIRECTORY = "/etc/weir-tls"
LOCAL_DIRECTORY = "/var/lib/weir-local"
"""Where executors mount the volume for local copies of state, unless the user mounts it."""

SPARK_CLASSES = "/opt/spark/jars/classes.jar"
SPARK_ARCHIVE = "/opt/spark/classes.jsa"
"""Spark's jars as one class path, and its classes as an archive that Java maps without reading any
jar. They exist in the project's image; Java ignores both in another one."""

TERMINATION_LOG = "/dev/termination-log"

SPARK_PORT = 7078
BLOCKS_PORT = 7079
API_PORT = 8081

PORTS = {"spark": SPARK_PORT, "blocks": BLOCKS_PORT, "api": API_PORT}
"""The named ports of a driver. Slots receive another one when they start."""
