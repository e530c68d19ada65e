"""Runs a program that starts its own Spark, does its work, and ends by itself.

For a test whose job needs no orders from outside: what happened is in the files that the program
has left in its home.
"""

import os
import subprocess
import sys
from pathlib import Path

from real_job import LOG_TAIL, SEARCHED
from real_processes import end_session

PATIENCE_S = 300
"""Far more than a quiet machine needs; a busy one takes long to start Spark."""


def run_program(script: str, home: Path, **environment: str) -> None:
    """It must end well, and nothing of it is left running."""
    with (home / "log").open("wb") as log:
        program = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, script, home],
            stdout=log,
            stderr=log,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(SEARCHED),
                "SPARK_LOCAL_IP": "127.0.0.1",
                **environment,
            },
            start_new_session=True,
        )
    try:
        status = program.wait(timeout=PATIENCE_S)
    finally:
        end_session(program.pid)
        program.wait()
    assert status == 0, (home / "log").read_text(errors="replace")[-LOG_TAIL:]
