"""Sizes of memory and files: "20 KiB", "1 MiB", and Flink's "20 kb", "1 mb" for the same.

In Python a size is a whole number of bytes. Every unit counts in steps of 1,024, as Flink's do. The
bare letters "k" and "m" are not read, because Kubernetes means 1,000 and a thousandth by them.
"""

from typing import Annotated

from weir.api.quantity import Quantity

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_SIZE = Quantity(
    noun="size",
    units={"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB},
    synonyms={
        **dict.fromkeys(("byte", "bytes"), "B"),
        **dict.fromkeys(("kb", "ki"), "KiB"),
        **dict.fromkeys(("mb", "mi"), "MiB"),
        **dict.fromkeys(("gb", "gi"), "GiB"),
        **dict.fromkeys(("tb", "ti"), "TiB"),
    },
    most=1_024 * TIB,
    example="20 KiB",
)

Size = Annotated[int, _SIZE]
"""Bytes; text with a unit outside of Python."""
