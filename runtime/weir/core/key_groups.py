"""Finds the key group of a key, and the subtask that owns a key group.

State moves between subtasks by key group and never by key, so these numbers are a file format: a
row, a timer and a line of a snapshot meet in one subtask only if everyone computes the same group,
today and in every later release. The numbers are those of Flink: the key's Java `hashCode`, mixed
by Murmur3, modulo the max parallelism. A manifest records `HASH`, `HASH_VERSION` and the max
parallelism; nothing here can be tuned.

A hash is a signed 32-bit number when it stands alone and `uint32` in an array; either form of one
hash has the same group. Widths matter (-1 hashes differently as an int and as a long), so the
caller, which has the schema, picks the function; this module looks at no type and knows no Arrow.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from weir.core.ids import KeyGroup
from weir.core.snapshots import KeyGroupRange

HASH = "java-hashcode/murmur3-32"
HASH_VERSION = 1

MAX_PARALLELISM_LIMIT = 1 << 15
DEFAULT_MAX_PARALLELISM_FLOOR = 1 << 7

NULL_HASH = 0
"""What a null adds to a row's hash."""

Hashes = npt.NDArray[np.uint32]
Groups = npt.NDArray[np.int32]

_LOW_32 = 0xFFFFFFFF
_LOW_31 = 0x7FFFFFFF
_TRUE, _FALSE = 1231, 1237


def default_max_parallelism(parallelism: int) -> int:
    """The power of two at or above one and a half times the parallelism, within bounds."""
    assert 0 < parallelism <= MAX_PARALLELISM_LIMIT, f"parallelism {parallelism} is out of bounds"
    roomy = 1 << (parallelism + parallelism // 2 - 1).bit_length()
    return min(max(roomy, DEFAULT_MAX_PARALLELISM_FLOOR), MAX_PARALLELISM_LIMIT)


def range_of(index: int, parallelism: int, max_parallelism: int) -> KeyGroupRange:
    """The key groups that one subtask owns; never empty."""
    assert 0 <= index < parallelism <= max_parallelism <= MAX_PARALLELISM_LIMIT
    first = (index * max_parallelism + parallelism - 1) // parallelism
    return KeyGroupRange(first, ((index + 1) * max_parallelism - 1) // parallelism)


def owner_of(group: int, parallelism: int, max_parallelism: int) -> int:
    """The index of the subtask that owns this key group."""
    return group * parallelism // max_parallelism


def owners_of(groups: Groups, parallelism: int, max_parallelism: int) -> Groups:
    # Both factors stay below 2**15 + 1, so the product fits in 32 bits.
    return groups * np.int32(parallelism) // np.int32(max_parallelism)


def group_of(key_hash: int, max_parallelism: int) -> KeyGroup:
    return KeyGroup(murmur(key_hash) % max_parallelism)


def groups_of(hashes: Hashes, max_parallelism: int) -> Groups:
    return (murmurs(hashes) % np.uint32(max_parallelism)).astype(np.int32)


def murmur(code: int) -> int:
    """Spread a 32-bit hash over 0 .. 2**31 - 1."""
    code = code * 0xCC9E2D51 & _LOW_32
    code = (code << 15 | code >> 17) & _LOW_32
    code = code * 0x1B873593 & _LOW_32
    code = (code << 13 | code >> 19) & _LOW_32
    code = (code * 5 + 0xE6546B64 & _LOW_32) ^ 4
    code = (code ^ code >> 16) * 0x85EBCA6B & _LOW_32
    code = (code ^ code >> 13) * 0xC2B2AE35 & _LOW_32
    code ^= code >> 16
    # The absolute value; the one number that has none, -2**31, becomes 0.
    return (-code if code >> 31 else code) & _LOW_31


def murmurs(hashes: Hashes) -> Hashes:
    code = hashes * np.uint32(0xCC9E2D51)
    code = code << np.uint32(15) | code >> np.uint32(17)
    code *= np.uint32(0x1B873593)
    code = code << np.uint32(13) | code >> np.uint32(19)
    code *= np.uint32(5)
    code += np.uint32(0xE6546B64)
    code ^= np.uint32(4)
    code ^= code >> np.uint32(16)
    code *= np.uint32(0x85EBCA6B)
    code ^= code >> np.uint32(13)
    code *= np.uint32(0xC2B2AE35)
    code ^= code >> np.uint32(16)
    return np.abs(code.view(np.int32)).view(np.uint32) & np.uint32(_LOW_31)


def hash_of_int(value: int) -> int:
    return _signed(value)


def hash_of_long(value: int) -> int:
    return _signed(value ^ value >> 32)


def hash_of_bool(value: bool) -> int:  # noqa: FBT001 - the key itself, not a switch
    return _TRUE if value else _FALSE


def hash_of_text(value: str) -> int:
    """Over UTF-16 code units, so a character outside the basic plane counts as two."""
    units = np.frombuffer(_utf16(value), "<u2").tolist()
    return _polynomial(units, seed=0)


def hash_of_bytes(value: bytes) -> int:
    return _polynomial(np.frombuffer(value, np.int8).tolist(), seed=1)


def hash_of_row(hashes: Iterable[int]) -> int:
    """A composite key's hash, from the hashes of its fields in order."""
    return _polynomial(hashes, seed=1)


def hashes_of_ints(values: npt.NDArray[np.int32]) -> Hashes:
    return values.astype(np.int32).view(np.uint32)


def hashes_of_longs(values: npt.NDArray[np.int64]) -> Hashes:
    return (values ^ values >> 32).astype(np.uint32)


def hashes_of_bools(values: npt.NDArray[np.bool_]) -> Hashes:
    return np.where(values, np.uint32(_TRUE), np.uint32(_FALSE))


def hashes_of_texts(values: Sequence[str]) -> Hashes:
    encoded = [_utf16(value) for value in values]
    units = np.frombuffer(b"".join(encoded), "<u2").astype(np.uint32)
    return _polynomials(units, [len(data) // 2 for data in encoded], seed=0)


def hashes_of_bytes(values: Sequence[bytes]) -> Hashes:
    units = np.frombuffer(b"".join(values), np.int8).astype(np.uint32)
    return _polynomials(units, [len(data) for data in values], seed=1)


def hashes_of_rows(columns: Sequence[Hashes]) -> Hashes:
    """Composite keys' hashes, from one array of hashes for each field in order."""
    hashes = np.ones_like(columns[0])
    for column in columns:
        hashes *= np.uint32(31)
        hashes += column
    return hashes


def _signed(code: int) -> int:
    return (code + (1 << 31) & _LOW_32) - (1 << 31)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _polynomial(units: Iterable[int], *, seed: int) -> int:
    code = seed
    for unit in units:
        code = code * 31 + unit & _LOW_32
    return _signed(code)


def _polynomials(units: Hashes, lengths: Sequence[int], *, seed: int) -> Hashes:
    """`_polynomial` of many sequences that follow each other in `units`."""
    sizes = np.asarray(lengths, np.int64)
    powers = np.full(sizes.max(initial=0) + 1, 31, np.uint32)
    powers[0] = 1
    powers = np.multiply.accumulate(powers, dtype=np.uint32)
    ends = np.cumsum(sizes)
    hashes = powers[sizes] * np.uint32(seed)
    filled = sizes > 0
    if filled.any():
        to_end = np.repeat(ends, sizes) - np.arange(len(units)) - 1
        terms = units * powers[to_end]
        hashes[filled] += np.add.reduceat(terms, (ends - sizes)[filled], dtype=np.uint32)
    return hashes
