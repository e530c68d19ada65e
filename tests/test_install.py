"""What ``pip install`` gives in a new virtual environment: no lock, no PYTHONPATH, no work tree.

Each test makes an environment with the README's command. The package index is the machine's own.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from source_tree import ROOT

SAVEPOINT = ROOT / "tests" / "golden" / "v1"

pytestmark = pytest.mark.timeout(900)  # an installation downloads what no cache has


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with the project in it, and an empty folder to work in."""

    home: Path

    def run(self, program, *arguments):
        """Run a program of the environment as a user's shell would, and return what it printed."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [self.home / "venv" / "bin" / program, *arguments],
            cwd=self.home,
            env={**kept, "PATH": f"{self.home}/venv/bin:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )


def installed(home, extra=""):
    """As the README says: ``pip install '.[EXTRA]'`` in a new virtual environment."""
    subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
    environment = Installed(home)
    done = environment.run("pip", "install", "--quiet", f"{ROOT}{extra}")
    assert done.returncode == 0, done.stderr
    return environment


def test_a_plain_install_reads_savepoints_and_names_the_extra_that_it_lacks(tmp_path):
    """U5 U3: what needs no Spark works; the rest names the command that adds it."""
    environment = installed(tmp_path)
    (tmp_path / "job.py").write_text("from weir import WeirSession\n")

    assert "weir run job.py" in environment.run("weir", "--help").stdout
    assert "sums" in environment.run("weir", "inspect", SAVEPOINT).stdout
    assert "No job of yours runs" in environment.run("weir", "jobs").stderr
    refused = environment.run("weir", "run", "job.py")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Remedy: pip install 'sparkweir[spark]'" in refused.stderr
    operator = environment.run("python", "-m", "weir_operator", "--help")
    assert "Remedy: pip install 'sparkweir[operator]'" in operator.stderr


def test_the_spark_extra_runs_the_job_of_the_readme(tmp_path):
    """U5 D5: the example, as it stands, from the command that the README gives."""
    (job,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    environment = installed(tmp_path, "[spark]")
    (tmp_path / "job.py").write_text(job.replace("/tmp/weir", str(tmp_path)))  # noqa: S108

    done = environment.run("python", "job.py")

    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("totals/*.parquet"))


def test_the_operator_extra_starts_the_operator(tmp_path):
    """U5 K2: it needs no Spark."""
    environment = installed(tmp_path, "[operator]")

    assert environment.run("python", "-m", "weir_operator", "--help").returncode == 0
    assert environment.run("python", "-c", "import pyspark").returncode != 0
