"""The architecture page describes the code as it is."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "runtime" / "ARCHITECTURE.md").read_text()
CORE = ROOT / "runtime" / "weir" / "core"


def test_every_module_of_the_core_has_its_place_on_the_page() -> None:
    """A new developer finds each module from the page."""
    modules = {path.stem for path in CORE.iterdir() if not path.name.startswith("__")}

    assert {module for module in modules if not re.search(rf"\b{module}\b", PAGE)} == set()


def test_the_stages_of_a_checkpoint_are_those_of_the_code() -> None:
    """The picture of a checkpoint's life names the types that hold it."""
    source = (CORE / "coordinator" / "pending_checkpoint.py").read_text()
    stages = re.findall(r"^class (\w+):\n", source, re.MULTILINE)
    drawn = re.findall(r"\b(Preparing|Collecting|Collected|Persisting|Logging)\b", PAGE)

    assert set(drawn) <= set(stages)
    assert len(set(drawn)) == 5


def test_the_ids_jump_by_what_the_page_says() -> None:
    """C19: sixteen, spelled out, is the block that an entry reserves."""
    block = re.search(r"^ID_BLOCK = (\d+)$", (CORE / "log_entries.py").read_text(), re.MULTILINE)

    assert block is not None
    assert block[1] == "16"
    assert "sixteen" in PAGE


def test_every_part_of_the_operator_has_its_place_on_its_page() -> None:
    """Each package and each task of the controller is named."""
    operator = ROOT / "operator" / "weir_operator"
    page = (ROOT / "operator" / "ARCHITECTURE.md").read_text()
    found = [path for path in operator.iterdir() if path.is_dir() or path.suffix == ".py"]
    parts = {path.stem for path in found if not path.name.startswith("__")}
    tasks = {
        "informers",
        "work_queue",
        "job_reconciler",
        "snapshot_reconciler",
        "watch_probe",
        "health_server",
    }

    assert tasks <= {path.stem for path in (operator / "controller").iterdir()}
    assert {part for part in parts | tasks if not re.search(rf"\b{part}\b", page)} == set()
