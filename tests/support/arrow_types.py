"""Arrow types of every family, to try what accepts some of them and refuses the others."""

import pyarrow as pa

ARROW_TYPES = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.decimal256(40, 2)),
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()),
    *(pa.bool_(), pa.null(), pa.date32(), pa.date64(), pa.timestamp("ms"), pa.duration("us")),
    *(pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.time64("us"), pa.list_(pa.int64())),
    *(pa.binary(4), pa.struct([("a", pa.int64())]), pa.dictionary(pa.int32(), pa.string())),
)
