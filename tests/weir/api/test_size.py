"""Sizes count in steps of 1,024 and are read back as they were written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from weir.api.size import GIB, KIB, MIB, TIB, Size

SIZES = TypeAdapter(Size)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("20 kb", 20 * KIB),
        ("20 KiB", 20 * KIB),
        ("20Ki", 20 * KIB),
        ("1 mb", MIB),
        ("1 GiB", GIB),
        ("512 bytes", 512),
        ("4096", 4 * KIB),
        (4096, 4 * KIB),
    ],
)
def test_sizes_are_read_as_flink_and_kubernetes_write_them(written, meant):
    assert SIZES.validate_python(written) == meant


@pytest.mark.parametrize("written", ["20 k", "20 M", "1.5 MiB", "-1 B", "2000 TiB", 0.5])
def test_what_is_not_clear_is_refused(written):
    with pytest.raises(ValidationError):
        SIZES.validate_python(written)


@given(st.integers(0, 1_024 * TIB))
def test_what_is_written_is_read_back(amount):
    written = SIZES.dump_python(amount)

    assert isinstance(written, str)
    assert SIZES.validate_python(written) == amount
