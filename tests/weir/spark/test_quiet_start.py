"""A session starts without the lines that every start of Spark prints."""

import os
import subprocess
import sys

SCRIPT = """
import sys
from weir.spark import WeirSession
builder = WeirSession.builder.config("weir.parallelism", 1)
if "broken" in sys.argv:
    builder = builder.config("spark.driver.bindAddress", "192.0.2.1")
builder.getOrCreate().stop()
"""

OF_THE_JVM = "WARNING: Using incubator modules: jdk.incubator.vector"
"""Printed by the JVM itself for a module that Spark asks for; nothing turns it off."""


def start(*words):
    logging = ("SPARK_CONF_DIR", "SPARK_HOME")
    environment = {name: it for name, it in os.environ.items() if name not in logging}
    command = [sys.executable, "-c", SCRIPT, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_start_says_nothing_that_every_start_says():
    """U3: what is shown is worth reading."""
    started = start()

    assert started.returncode == 0, started.stderr
    assert set(started.stderr.splitlines()) <= {OF_THE_JVM}


def test_a_start_that_fails_still_shows_the_error_of_spark():
    """U3: quiet, not silent."""
    started = start("broken")

    assert started.returncode != 0
    assert "192.0.2.1" in started.stderr or "BindException" in started.stderr
