"""A savepoint that an older release made, and what it must hold."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "golden"
GOLDEN = FOLDER / "v1"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "v1.json").read_text())
