"""Follows a page of the documentation as its reader does: every command as it stands, in order.

A block of ``sh`` is a step, and a block of ``text`` below it shows what the step says. Numbers are
not the same twice, so a word with a digit stands for any such word, and a ``…`` for the rest of its
line. A section whose heading begins with "Or:" is another way to the same place and is passed over.
So is a block that begins with ``./dev``: who runs this has made the cluster, and will end it. What
the page is about is not known here.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from cluster import ROOT

STEP_S = 900.0
"""Longer than all that a block of commands waits for by itself."""

ANOTHER_WAY, OWN_DOING = "Or:", "./dev"
REST = "…"

_PIECE = re.compile(
    r"^#+ (?P<heading>[^\n]+)$|^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_SHELL = """
set -eo pipefail
. "$1"
eval "$2"
declare -f >"$1"
"""
"""A reader's shell remembers the functions of earlier steps."""


@dataclass(frozen=True, slots=True)
class Step:
    """A block of commands, and the lines that it is said to show."""

    section: str
    commands: str
    shown: tuple[str, ...] = ()

    @property
    def is_another_way(self) -> bool:
        return self.section.startswith(ANOTHER_WAY)

    @property
    def is_own_doing(self) -> bool:
        return self.commands.startswith(OWN_DOING)

    @property
    def lines(self) -> list[str]:
        """The commands without what is remarked on them."""
        return [line.partition(" #")[0].rstrip() for line in self.commands.splitlines()]


def steps(page: Path) -> list[Step]:
    """All that a page tells its readers to do."""
    section = ""
    found: list[Step] = []
    for piece in _PIECE.finditer(page.read_text()):
        if piece["heading"]:
            section = piece["heading"]
        elif piece["language"] == "sh":
            found.append(Step(section, piece["body"]))
        elif piece["language"] == "text":
            found[-1] = replace(found[-1], shown=tuple(piece["body"].splitlines()))
    return found


@dataclass(slots=True)
class FollowedPage:
    """A reader, and what is still ahead of them."""

    ahead: list[Step]
    environment: Mapping[str, str]
    memory: Path
    """A file for what a shell must remember from one step to the next."""
    stuck_at: str = ""
    sections: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.sections = frozenset(step.section for step in self.ahead)
        self.memory.touch()

    def follow_to(self, section: str) -> None:
        """Everything that was not followed yet, to the end of this section."""
        assert section in self.sections, f"there is nothing to do in a section '{section}'"
        assert not self.stuck_at, f"the page led no further than:\n{self.stuck_at}"
        while any(step.section == section for step in self.ahead):
            step = self.ahead.pop(0)
            self.stuck_at = step.commands
            self._follow(step)
            self.stuck_at = ""

    def _follow(self, step: Step) -> None:
        said = self._said(step.commands)
        missed = unseen(step.shown, said)
        assert not missed, f"{step.commands}\ndoes not show:\n{missed[0]}\nbut:\n{said}"

    def _said(self, commands: str) -> str:
        """What a shell says to the commands; all of them must succeed."""
        with subprocess.Popen(  # noqa: S603 - our own page
            ["bash", "-c", _SHELL, "reader", str(self.memory), commands],  # noqa: S607 - as theirs
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as shell:
            try:
                said, complaint = shell.communicate(timeout=STEP_S)
            except BaseException:
                os.killpg(shell.pid, signal.SIGKILL)
                raise
        assert not shell.returncode, (
            f"{commands}\nended with {shell.returncode}:\n{said}{complaint}"
        )
        return said


def unseen(shown: Iterable[str], said: str) -> list[str]:
    """The lines of the page that were not said, or not in this order."""
    heard = iter(said.splitlines())
    return [line for line in shown if not any(_is_alike(line, other) for other in heard)]


def _is_alike(shown: str, said: str) -> bool:
    wanted, words = shown.split(), said.split()
    if wanted[-1:] == [REST]:
        wanted.pop()
        del words[len(wanted) :]
    return len(wanted) == len(words) and all(map(_stands_for, wanted, words))


def _stands_for(shown: str, said: str) -> bool:
    return shown == said or (_has_digit(shown) and _has_digit(said))


def _has_digit(word: str) -> bool:
    return any(sign.isdigit() for sign in word)
