"""What the documents show is run, so that a reader can trust it."""

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from described_streams import graph_of, session
from weir.core.ids import EdgeId, Millis, OperatorId, SubtaskId
from weir.dataflow.physical import FunctionHead
from weir.dataflow.reader import StreamReader
from weir.ports.operators import RestoredState, TaskInfo
from weir.slot.function import FunctionOperator

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


PAGES = [
    "README.md",
    "SPECIFICATION.md",
    "CONTRIBUTING.md",
    "runtime/ARCHITECTURE.md",
    *sorted(f"docs/{p.name}" for p in ROOT.glob("docs/*.md")),
]


@pytest.mark.parametrize("document", PAGES)
def test_every_link_inside_the_project_leads_somewhere(document):
    """U3: a reader is never sent to a file that is gone."""
    page = ROOT / document
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []


ROOTS = [
    ".ci",
    "crds",
    "demo",
    "docs",
    "e2e",
    "helm",
    "manifests",
    "operator",
    "runtime",
    "tests",
    "dev",
    "pyproject.toml",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SPECIFICATION.md",
]


def missing_paths(page):
    """Paths in backquotes that begin with a name of the root, and that do not exist."""
    named = [path for path in re.findall(r"`([\w./-]+)`", page) if path.split("/")[0] in ROOTS]
    assert named, "the page names no path"
    return [path for path in named if not (ROOT / path).exists()]


def test_every_file_that_contributors_are_sent_to_exists():
    """U3: full paths, so that a renamed module is noticed here."""
    assert missing_paths((ROOT / "CONTRIBUTING.md").read_text()) == []


def test_a_path_that_is_gone_is_noticed():
    assert missing_paths("`runtime/weir/core/gone.py` and `docs`") == ["runtime/weir/core/gone.py"]


LONG = 4
COUNTS = {"Two": 2, "Three": 3, "Four": 4, "Six": 6}


def recipes():
    """The count that each "How do I" gives, its numbered files, and its text."""
    sections = re.split(r"^###? ", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)
    for section in sections:
        if section.startswith("…"):
            count = re.search(r"^(\w+) files", section, re.MULTILINE)
            yield count[1], len(re.findall(r"^\d\. ", section, re.MULTILINE)), section


def test_a_recipe_counts_its_files_and_says_why_it_needs_many():
    """U3."""
    found = list(recipes())
    assert len(found) == 9
    for count, listed, section in found:
        assert listed in {COUNTS[count], COUNTS[count] + (" three if " in section)}, section
        assert listed <= LONG or "because" in section, section


class Described:
    """A session in which streams can be described."""

    readStream = StreamReader(session())  # noqa: N815 - PySpark's name


@pytest.fixture
def described():
    """What the examples of the page about state define."""
    names = {"session": Described()}
    exec("\n".join(examples("docs/state.md")), names)  # noqa: S102 - our own page
    return names


def opened(stream):
    """The one function of a stream, as one of two subtasks runs it."""
    (head,) = [s.head for s in graph_of(stream).stages if isinstance(s.head, FunctionHead)]
    place = TaskInfo(SubtaskId(OperatorId("shown"), 1), 2, 128, 1, 1, lambda: Millis(0))
    operator = FunctionOperator(head, place)
    operator.restore(RestoredState())
    return head, operator


def orders(*amounts):
    return pa.record_batch({"user": ["ann"] * len(amounts), "amount": pa.array(amounts)})


def shown(batches):
    return [row for batch in batches for row in batch.to_pylist()]


MAIN = EdgeId("orders")


def test_the_rules_of_the_page_about_state_let_large_orders_through(described):
    """D2 S1: broadcast state."""
    head, operator = opened(described["above"])
    operator.process(head.broadcast[0], pa.record_batch({"user": ["ann"], "most": [5]}))

    made = shown(operator.process(MAIN, orders(4, 6)))

    assert made == [{"user": "ann", "amount": 6, "most": 5}]


def test_the_packs_of_the_page_about_state_wait_for_a_thousand_rows(described):
    """D2 S1: list state."""
    _, operator = opened(described["packed"])

    made = [len(shown(operator.process(MAIN, orders(*range(n))))) for n in (600, 600, 3)]

    assert made == [0, 1200, 0]
    assert len(shown(operator.finish())) == 3


def test_the_numbers_of_the_page_about_state_leave_room_for_the_other_subtask(described):
    """D2 S1: union list state."""
    _, operator = opened(described["numbered"])

    made = shown(operator.process(MAIN, orders(7, 8)))

    assert [row["number"] for row in made] == [1, 3]
