"""What the page about savepoints shows, done in the order of the page."""

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from weir.cli.__main__ import app
from weir.connectors.pyspark.processor import ProcessorOperator
from weir.core.ids import EdgeId, Millis, OperatorId, SubtaskId
from weir.dataflow.physical import ProcessorHead, RowsAs
from weir.dataflow.types import schema_of
from weir.ports.operators import RestoredState, TaskInfo
from weir.state.memory.memory_backend import MemoryBackend
from weir.storage import state_files
from weir.storage.inspection import find
from weir.storage.stores import store_for

PAGE = (Path(__file__).parents[3] / "docs/savepoints.md").read_text()
PLACE = "/tmp/weir"  # noqa: S108 - where the examples say they write
INPUT = schema_of("user string")
OUTPUT = schema_of("user string, views long, pages int")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return str(tmp_path_factory.mktemp("docs"))


@pytest.fixture(scope="module")
def shown(session, place):
    """The names that the examples in Python leave behind."""
    names = {"spark": session.spark}
    for example in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(example.replace(PLACE, place), names)  # noqa: S102 - it is our own page
    return names


def test_a_processor_begins_with_what_the_page_bootstraps(shown, place):
    """S9: the states that it declares are those that were made."""
    store = store_for("file://")
    manifest = find(store, f"file://{place}/savepoints/last-year")
    files = [
        (handle.groups, state_files.fetch(store, handle.file))
        for snapshot in manifest.snapshots
        for handle in snapshot.keyed
    ]
    head = ProcessorHead(("user",), shown["Users"](), RowsAs.ROWS, INPUT, OUTPUT, "ProcessingTime")
    subtask = SubtaskId(OperatorId("users"), 0)
    operator = ProcessorOperator(
        head, TaskInfo(subtask, 1, 128, 1, 1, lambda: Millis(0)), MemoryBackend
    )
    operator.restore(RestoredState(files))

    (batch,) = pa.table({"user": ["ada", "bob"]}, schema=INPUT).to_batches()
    rows = [row for out in operator.process(EdgeId("in"), batch) for row in out.to_pylist()]
    assert rows == [
        {"user": "ada", "views": 4, "pages": 2},
        {"user": "bob", "views": 2, "pages": 1},
    ]
    assert operator.next_timer() == 86_401_500


def test_the_state_that_the_page_reads_is_the_one_it_made(shown):
    """S9: as a DataFrame, which Spark can compute on."""
    found = {(r.user, r.user_key_page): r.value_views for r in shown["pages"].collect()}
    assert found == {("ada", "shop"): 3, ("ada", "blog"): 1, ("bob", "shop"): 2}


@pytest.mark.parametrize(
    "command",
    [line for line in PAGE.splitlines() if re.match(f"weir (inspect|diff) {PLACE}", line)],
)
@pytest.mark.usefixtures("shown")
def test_every_command_that_looks_into_a_savepoint_works(place, command, monkeypatch):
    """U2: as it stands on the page."""
    monkeypatch.setenv("COLUMNS", "200")
    words = shlex.split(command.replace(PLACE, place), comments=True)
    done = CliRunner().invoke(app, words[1:])

    assert done.exit_code == 0, done.output
    assert "users" in done.output or "shop" in done.output
