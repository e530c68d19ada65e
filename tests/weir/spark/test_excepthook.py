"""A script that Weir refuses ends with a message, as any other program's does."""

import subprocess
import sys

SCRIPT = """
import logging
import sys
from weir.errors import JobRejected
from weir.spark import WeirSession

def build():
    if "bug" in sys.argv:
        raise ValueError("of the script")
    if "debug" in sys.argv:
        logging.getLogger("weir").setLevel(logging.DEBUG)
    WeirSession.builder.config("weir.parallelism", 0).getOrCreate()

try:
    WeirSession.builder.config("weir.parallelism", -1).getOrCreate()
except JobRejected:
    pass
build()
"""


def run(home, *words):
    (home / "job.py").write_text(SCRIPT)
    command = [sys.executable, "job.py", *words]
    return subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)


def test_a_refusal_under_plain_python_is_one_message(tmp_path):
    """U3: the problem, the cause, the remedy, and the script's own line."""
    ended = run(tmp_path)

    problem, cause, place, remedy = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert problem == "Error: parallelism = 0."
    assert cause.startswith("Cause: ")
    assert place == f"  at {tmp_path}/job.py:12 in build"
    assert remedy == "Remedy: use a number from 1 to 32768."


def test_a_mistake_of_the_script_keeps_its_trace(tmp_path):
    """U3."""
    ended = run(tmp_path, "bug")

    assert ended.stderr.startswith("Traceback ")
    assert ended.stderr.endswith("ValueError: of the script\n")


def test_a_refusal_has_its_trace_too_where_debugging_is_on(tmp_path):
    """U3."""
    ended = run(tmp_path, "debug")

    assert ended.stderr.startswith("Traceback ")
    assert "Error: parallelism = 0." in ended.stderr
