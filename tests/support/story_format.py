"""Reads and writes stories: paragraphs of plain text, in which commands have their answers below.

A paragraph of `#` lines is for the reader. One that begins with `given` sets the scene, and what it
leads to is not shown. Every other paragraph is one or more commands, a line of dashes, and what
they lead to.
"""

from collections.abc import Callable
from dataclasses import dataclass

DASHES = "----"
NOTHING = "nothing"

Teller = Callable[[str], list[str]]
"""Carries out one command; what it leads to, line by line."""


@dataclass(frozen=True)
class Paragraph:
    """Some lines between two empty ones."""

    lines: tuple[str, ...]

    def replayed(self, tell: Teller) -> "Paragraph":
        """The same commands with the answers of today."""
        first = self.lines[0]
        if first.startswith("#"):
            return self
        if first.startswith("given "):
            for line in self.lines:
                tell(line.removeprefix("given "))
            return self
        assert DASHES in self.lines, f"no answer stands below: {first}"
        commands = self.lines[: self.lines.index(DASHES)]
        answers = [answer for command in commands for answer in tell(command)]
        return Paragraph((*commands, DASHES, *(answers or [NOTHING])))


def replayed(text: str, tell: Teller) -> str:
    paragraphs = [Paragraph(tuple(part.splitlines())) for part in text.strip().split("\n\n")]
    answered = ["\n".join(paragraph.replayed(tell).lines) for paragraph in paragraphs]
    return "\n\n".join(answered) + "\n"
