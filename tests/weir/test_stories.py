"""Stories of a job, in plain text: what happened, and what the driver decided.

`pytest tests/weir/test_stories.py --rewrite` accepts what has changed; read the difference.
"""

from pathlib import Path

import pytest

from story_text import replayed
from told_job import Scene

STORIES = sorted(Path(__file__).with_name("stories").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_driver_still_decides_as_the_story_tells(path, request):
    """Every story says in its first paragraph which lines of the specification it is about."""
    text = path.read_text(encoding="utf-8")

    told = replayed(text, Scene().tell)

    if request.config.getoption("--rewrite"):
        path.write_text(told, encoding="utf-8")
    else:
        assert told == text
