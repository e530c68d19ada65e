"""Writes the CRDs into a directory: ``python -m weir_operator.crd crds``."""

import sys
from pathlib import Path

from weir_operator.crd.definitions import files


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
