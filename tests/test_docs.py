"""What the documents show is run, so that a reader can trust it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLACE = "/tmp/weir"  # noqa: S108 - where the example says it writes


def examples(document):
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


@pytest.mark.timeout(180)
def test_the_job_of_the_readme_runs_to_its_end(tmp_path):
    """D5 R6: one file, no cluster, and every result is there."""
    (job,) = examples("README.md")
    script = tmp_path / "job.py"
    script.write_text(job.replace(PLACE, str(tmp_path)) + "print(job.status)\n")

    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)

    assert done.stdout.splitlines()[-1:] == ["finished"], done.stderr
    assert list(tmp_path.glob("totals/*.parquet"))


@pytest.mark.parametrize(
    "document", ["README.md", "runtime/ARCHITECTURE.md", "docs/guarantees.md", "docs/savepoints.md"]
)
def test_every_link_inside_the_project_leads_somewhere(document):
    """U3: a reader is never sent to a file that is gone."""
    page = ROOT / document
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []
