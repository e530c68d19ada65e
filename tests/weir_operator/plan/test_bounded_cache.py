"""What was computed of a text is remembered, for as many bytes of text as were allowed."""

from weir_operator.plan import spec_versions
from weir_operator.plan.bounded_cache import BoundedCache
from weir_operator.resource.compression import packed
from weir_operator.resource.status_fields import SpecVersion


def test_a_text_is_computed_once_while_there_is_room():
    """K9."""
    asked = []
    memo = BoundedCache(lambda text: asked.append(text) or len(text), most_bytes=10)

    assert [memo("abc"), memo("abc"), memo("defg")] == [3, 3, 4]
    assert asked == ["abc", "defg"]


def test_what_was_used_least_recently_is_forgotten_first():
    """K9: however many texts there are, and however long each is."""
    asked = []
    memo = BoundedCache(asked.append, most_bytes=10)
    for text in ("aaaa", "bbbb", "aaaa", "cccc", "aaaa", "bbbb"):
        memo(text)

    assert asked == ["aaaa", "bbbb", "cccc", "bbbb"]
    assert memo.held_bytes == 8


def test_a_text_that_is_longer_than_the_room_is_not_remembered():
    """K9."""
    memo = BoundedCache(len, most_bytes=10)

    assert memo("é" * 6) == 6
    assert memo.held_bytes == 0


def test_versions_of_many_jobs_take_no_more_room_than_was_allowed():
    """K9: one tenant's large specifications do not fill the operator's memory."""
    for number in range(40):
        secret = "".join(chr(33 + (number * 7 + i * i) % 90) for i in range(90_000))
        spec = {"image": "orders:1", "driver": {"podTemplate": {"a": secret, "n": number}}}
        spec_versions.readable(SpecVersion(generation=1, hash="a", compressed_spec=packed(spec)))

    assert spec_versions.specifications.held_bytes <= spec_versions.CACHED_BYTES
