"""Remembers which files a source has found: a file is its whole path.

Checkpoints hold the files as JSON text: an object that maps each directory to the names of its
files. Older checkpoints hold a plain list of names, which are files of the directory that the job
reads now. The text that was parsed last is cached, so that a discovery without new files parses and
writes nothing.
"""

import json


class SeenFiles:
    """All files that a source has found, of every directory that its job has read."""

    def __init__(self) -> None:
        self._read_from = ("", "")
        self._by_directory: dict[str, list[str]] = {}
        self._names: set[str] = set()

    def fresh(self, text: str, directory: str, found: list[str]) -> list[str]:
        """The names of a directory that the text does not hold, in the order they are given."""
        self._read(text, directory)
        return [name for name in found if name not in self._names]

    def add(self, text: str, directory: str, names: list[str]) -> str:
        """The text once these files of a directory have been seen too."""
        self._read(text, directory)
        if not names:
            return text
        self._names.update(names)
        self._by_directory[directory] = sorted(self._names)
        after = json.dumps(self._by_directory)
        self._read_from = (after, directory)
        return after

    def _read(self, text: str, directory: str) -> None:
        if self._read_from == (text, directory):
            return
        held = json.loads(text) if text else {}
        self._by_directory = {directory: held} if isinstance(held, list) else held
        self._names = set(self._by_directory.get(directory, ()))
        self._read_from = (text, directory)
