"""A machine of a test's own: a home, and a PATH with only the programs that it may find.

So a script can be shown any machine, a poor one too, and nothing is downloaded or installed.
"""

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from source_tree import ROOT


@dataclass(frozen=True, slots=True)
class Machine:
    """Where ``./dev`` is run."""

    home: Path

    def has(self, name: str, script: str) -> Path:
        program = self.home / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(script)
        program.chmod(0o755)
        return program

    def dev(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own command
            [ROOT / "dev", *arguments],
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": str(self.home / "bin"), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


def bare_machine(home: Path, tools: Iterable[str]) -> Machine:
    """One that has these tools of the real machine and nothing else."""
    machine = Machine(home)
    for tool in tools:
        machine.has(tool, f'#!/bin/sh\nexec {shutil.which(tool)} "$@"\n')
    return machine
