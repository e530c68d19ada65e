"""Compresses a specification into one line of text, so that two of them fit into a status.

The API server stores an object up to about 1.5 MiB, and a status holds the deployed specification
and the last stable one beside the specification itself. The text is gzip in base64, which ``base64
-d | gunzip`` decodes. The same specification always gives the same text.
"""

import base64
import binascii
import gzip
import json
import zlib
from collections.abc import Mapping

LARGEST_UNPACKED = 4 * 1_024 * 1_024
"""More than the API server stores of any object; a text that unpacks to more is not ours."""

_GZIP_WITH_ANY_WINDOW = 16 + zlib.MAX_WBITS


class NotPacked(ValueError):
    """A text that ``packed`` did not write."""


def packed(spec: Mapping[str, object]) -> str:
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def unpacked(text: str) -> dict[str, object]:
    """Read what ``packed`` wrote; at most ``LARGEST_UNPACKED`` bytes of it are ever in memory."""
    try:
        stream = zlib.decompressobj(_GZIP_WITH_ANY_WINDOW)
        found = stream.decompress(base64.b64decode(text, validate=True), LARGEST_UNPACKED)
        spec = json.loads(found) if stream.eof else None
    except (binascii.Error, zlib.error, ValueError) as problem:
        raise NotPacked(f"it is not gzip of JSON in base64: {problem}") from problem
    if not isinstance(spec, dict):
        raise NotPacked("it is cut off, too large, or not a mapping")
    return spec
