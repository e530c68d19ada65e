"""Encodes and decodes the frames of one connection between slots.

Names are long and batches are many, so the encoder gives each run, channel and schema a number at
its first use, and the decoder keeps the same tables. Numbers belong to a connection: a new one
starts with empty tables on both sides. Batches are Arrow's own messages; markers and names are the
JSON of ``weir.wire.json_codec``; nothing is ever unpickled (spec X2).

Neither side knows sockets: the encoder returns messages, the decoder takes frames.
"""

from collections.abc import Callable, Hashable
from enum import IntEnum
from struct import Struct
from typing import NamedTuple, TypeVar

import pyarrow as pa

from weir.core.channels import MARKERS
from weir.core.ids import ChannelId, SlotId
from weir.errors import JobRejected
from weir.exchange.channel_events import Arrived, Credited, Event, Run
from weir.wire import json_codec
from weir.wire.frames import FRAME_LIMIT, DamagedFrame, Frame, header

_Named = TypeVar("_Named", bound=Hashable)

_CREDIT = Struct("!II")


class Kind(IntEnum):
    """What a frame of the exchange is."""

    RUN = 1
    """From now on this number means this run."""
    CHANNEL = 2
    """From now on this number means this channel."""
    SCHEMA = 3
    """Batches of this channel in this run look like this."""
    BATCH = 4
    MARKER = 5
    GRANT = 6
    FORGET = 7
    """No more frames of this run follow."""


class Message(NamedTuple):
    """A frame to be written."""

    run: Run | None
    """Whose attempt's end makes it pointless; None if the tables depend on it."""
    parts: tuple[memoryview, ...]


class _Form(NamedTuple):
    """How the batches of a channel are sent."""

    given: pa.Schema
    sent: pa.Schema
    encoded: bool


_Frame = tuple[Kind, bytes | pa.Buffer]


class FrameEncoder:
    """The sending side of a connection."""

    def __init__(self) -> None:
        self.runs: dict[Run, int] = {}
        self._channels: dict[ChannelId, int] = {}
        self._forms: dict[tuple[Run, ChannelId], _Form] = {}
        self._last_run = 0

    def element(self, run: Run, channel: ChannelId, element: object) -> list[Message]:
        if isinstance(element, pa.RecordBatch):
            return self._messages(run, channel, *self._batch(run, channel, element))
        return self._messages(run, channel, (Kind.MARKER, json_codec.dumps(element)))

    def grant(self, run: Run, channel: ChannelId, batches: int, rows: int) -> list[Message]:
        return self._messages(run, channel, (Kind.GRANT, _CREDIT.pack(batches, rows)))

    def forget(self, run: Run) -> list[Message]:
        number = self.runs.pop(run, None)
        if number is None:
            return []
        self._forms = {key: form for key, form in self._forms.items() if key[0] != run}
        return [_table_entry(Kind.FORGET, 0, number, b"")]

    def _batch(self, run: Run, channel: ChannelId, batch: pa.RecordBatch) -> list[_Frame]:
        form = self._forms.get((run, channel))
        if form is not None and form.given.equals(batch.schema, check_metadata=True):
            return [(Kind.BATCH, _serialized(channel, batch, form))]
        form = _form(channel, batch.schema)
        payload = _serialized(channel, batch, form)
        self._forms[run, channel] = form
        return [(Kind.SCHEMA, form.sent.serialize()), (Kind.BATCH, payload)]

    def _messages(self, run: Run, channel: ChannelId, *frames: _Frame) -> list[Message]:
        messages: list[Message] = []
        if run not in self.runs:
            self._last_run += 1
            self.runs[run] = self._last_run
            messages.append(_table_entry(Kind.RUN, 0, self._last_run, json_codec.dumps(run)))
        if channel not in self._channels:
            number = self._channels[channel] = len(self._channels) + 1
            messages.append(_table_entry(Kind.CHANNEL, number, 0, json_codec.dumps(channel)))
        for kind, payload in frames:
            head = header(kind, len(payload), self._channels[channel], self.runs[run])
            messages.append(Message(run, (memoryview(head), memoryview(payload).cast("B"))))
        return messages


class FrameDecoder:
    """The receiving side of a connection."""

    def __init__(self, peer: SlotId) -> None:
        self._peer = peer
        self.runs: dict[int, Run] = {}
        self._channels: dict[int, ChannelId] = {}
        self._schemas: dict[tuple[int, int], pa.Schema] = {}
        self._handlers: dict[int, Callable[[Frame], Event | None]] = {
            Kind.RUN: self._run,
            Kind.CHANNEL: self._channel,
            Kind.SCHEMA: self._schema,
            Kind.BATCH: self._batch,
            Kind.MARKER: self._marker,
            Kind.GRANT: self._grant,
            Kind.FORGET: self._forget,
        }

    def decode(self, frame: Frame) -> Event | None:
        """What the frame means to the slot; None if it only concerns the tables."""
        handler = self._handlers.get(frame.kind)
        if handler is None:
            raise DamagedFrame(f"a frame is of the unknown kind {frame.kind}")
        try:
            return handler(frame)
        except (ValueError, pa.ArrowException) as problem:
            kind = Kind(frame.kind).name.lower()
            raise DamagedFrame(f"a {kind} frame cannot be read: {problem}") from problem

    def _run(self, frame: Frame) -> None:
        match json_codec.loads(bytes(frame.payload)):
            case (int(epoch), int(attempt)):
                self.runs[frame.run] = (epoch, attempt)
            case other:
                raise ValueError(f"{other} is not a run")

    def _channel(self, frame: Frame) -> None:
        channel = json_codec.loads(bytes(frame.payload))
        if not isinstance(channel, ChannelId):
            raise ValueError(f"{channel} is not a channel")  # noqa: TRY004  # it came from outside
        self._channels[frame.channel] = channel

    def _schema(self, frame: Frame) -> None:
        schema = pa.ipc.read_schema(pa.py_buffer(frame.payload))
        self._schemas[frame.run, frame.channel] = schema

    def _batch(self, frame: Frame) -> Arrived:
        run, channel = self._named(frame)
        schema = _looked_up(self._schemas, (frame.run, frame.channel))
        batch = pa.ipc.read_record_batch(pa.py_buffer(frame.payload), schema)
        return Arrived(self._peer, run, channel, batch)

    def _marker(self, frame: Frame) -> Arrived:
        run, channel = self._named(frame)
        marker = json_codec.loads(bytes(frame.payload))
        if not isinstance(marker, MARKERS):
            raise ValueError(f"{marker} is not a marker")  # noqa: TRY004  # it came from outside
        return Arrived(self._peer, run, channel, marker)

    def _grant(self, frame: Frame) -> Credited:
        run, channel = self._named(frame)
        if len(frame.payload) != _CREDIT.size:
            raise ValueError("it is of another size")
        return Credited(run, channel, *_CREDIT.unpack(frame.payload))

    def _forget(self, frame: Frame) -> None:
        self.runs.pop(frame.run, None)
        self._schemas = {key: it for key, it in self._schemas.items() if key[0] != frame.run}

    def _named(self, frame: Frame) -> tuple[Run, ChannelId]:
        return _looked_up(self.runs, frame.run), _looked_up(self._channels, frame.channel)


_Number = TypeVar("_Number", int, tuple[int, int])


def _looked_up(table: dict[_Number, _Named], number: _Number) -> _Named:
    if number not in table:
        raise ValueError(f"the number {number} has not been defined")
    return table[number]


def _table_entry(kind: Kind, channel: int, run: int, payload: bytes) -> Message:
    return Message(None, (memoryview(header(kind, len(payload), channel, run) + payload),))


def _form(channel: ChannelId, given: pa.Schema) -> _Form:
    """Dictionaries would have to travel and grow apart from the batches; the values go instead."""
    sent = given
    for index, field in enumerate(given):
        if pa.types.is_dictionary(field.type):
            sent = sent.set(index, field.with_type(field.type.value_type))
        elif _has_dictionary(field.type):
            raise JobRejected(
                f"column {field.name!r} on channel {channel} cannot be sent",
                f"its type {field.type} has a dictionary inside",
                "cast it to a type without dictionaries first",
            )
    return _Form(given, sent, encoded=sent is not given)


def _has_dictionary(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind) or any(
        _has_dictionary(kind.field(index).type) for index in range(kind.num_fields)
    )


def _serialized(channel: ChannelId, batch: pa.RecordBatch, form: _Form) -> pa.Buffer:
    payload = (_decoded(batch, form.sent) if form.encoded else batch).serialize()
    if payload.size > FRAME_LIMIT:
        raise JobRejected(
            f"a batch of {batch.num_rows} rows on channel {channel} cannot be sent",
            f"it has {payload.size} bytes, above the limit of {FRAME_LIMIT}",
            "emit smaller batches",
        )
    return payload


def _decoded(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return pa.record_batch(columns, schema=schema)
