"""Stories of a job, in plain text: what happened, and what the driver decided.

`pytest tests/weir/test_stories.py --rewrite` accepts what has changed; read the difference.
"""

from pathlib import Path

import pytest

from story_format import replayed
from story_scenario import StoryJob

STORIES = sorted(Path(__file__).with_name("stories").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_driver_still_decides_as_the_story_tells(path, request):
    """The first paragraph of every story names the lines of the specification that it is about."""
    text = path.read_text(encoding="utf-8")

    answered = replayed(text, StoryJob().tell)

    if request.config.getoption("--rewrite"):
        path.write_text(answered, encoding="utf-8")
    else:
        assert answered == text


# The runner itself

TRUE = "given driver ada\n\nrequest bob savepoint\n----\nDEBUG   Preparing {} for savepoint 1.\n"


def answered(text):
    return replayed(text, StoryJob().tell)


def test_the_replay_of_a_true_story_leaves_its_text_unchanged():
    """A replay that changed anything else would hide what the driver changed."""
    text = TRUE.format("store/orders/savepoint-1")

    assert answered(text) == text


def test_the_replay_of_a_false_story_corrects_its_text():
    """Else no story could ever fail."""
    assert answered(TRUE.format("store/elsewhere")) == TRUE.format("store/orders/savepoint-1")


def test_a_command_that_leads_to_nothing_says_so():
    """An empty answer could be a forgotten one."""
    assert (
        answered("given driver ada\n\ntime 7\n----\n")
        == "given driver ada\n\ntime 7\n----\nnothing\n"
    )


def test_a_paragraph_without_an_answer_is_refused():
    """A command whose answer is ignored must be marked so."""
    with pytest.raises(AssertionError, match="no answer stands below: time 7"):
        answered("given driver ada\n\ntime 7\n")


@pytest.mark.parametrize(
    "impossible",
    [
        ["manifest 1 written"],
        ["ack 1 rest"],
        ["request bob checkpoint", "ack 1 rest", "manifest 1 written", "entry taken"],
        ["driver eve", "as ada", "lost a", "slot c", "time 100", "log free"],
    ],
)
def test_a_story_cannot_tell_what_cannot_be(impossible):
    """A storage that accepts everything would prove nothing."""
    with pytest.raises(AssertionError):
        answered("\n".join(f"given {command}" for command in ("driver ada", *impossible)))
