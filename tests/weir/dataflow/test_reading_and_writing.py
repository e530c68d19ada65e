"""Where streams begin and end: formats by name, options that are understood or refused."""

import pyarrow as pa
import pytest

from described_streams import EVENTS, Described, Nowhere, events, session
from weir.dataflow.formats import Formats
from weir.dataflow.options import Options
from weir.dataflow.reader import StreamReader
from weir.dataflow.types import schema_of
from weir.dataflow.writer import Session
from weir.errors import JobRejected


def reader():
    return StreamReader(session())


def tuned(options):
    options.required("topic")
    options.integer("rowsPerSecond", 10)
    options.duration_ms("pollInterval", 100)
    options.flag("followLinks", default=False)
    return Described(schema_of(EVENTS))


def tuned_reader():
    formats = Formats({"tuned": tuned}, {})
    return StreamReader(Session(formats, submit=lambda written: written)).format("tuned")


def test_a_stream_is_read_by_the_name_of_its_format():
    """D2: readStream.format().option().load()."""
    seen = {}

    def source(options):
        seen.update(options)
        return Described(schema_of("a long"))

    read = StreamReader(Session(Formats({"mine": source}, {}), submit=lambda written: written))
    stream = read.format("MINE").option("n", 3).options(deep=True, text="x").load("some/where")

    assert stream.columns == ["a"]
    assert seen == {"n": "3", "deep": "true", "text": "x", "path": "some/where"}


def test_a_declared_schema_reaches_the_source():
    assert reader().schema("a int").json("some/where").columns == ["a"]
    assert reader().parquet("some/where").columns == ["user", "value", "price", "ts"]


def test_starting_submits_the_stream_with_all_that_was_said():
    """D2: writeStream."""
    written = (
        events()
        .filter("value > 3")
        .writeStream.format("nowhere")
        .option("checkpointLocation", "s3://bucket/job")
        .outputMode("Append")
        .queryName("large")
        .uid("out")
        .start("some/where")
    )

    assert written.sink == Nowhere(schema_of(EVENTS))
    assert (written.output_mode, written.query_name, written.settings.uid) == (
        "append",
        "large",
        "out",
    )
    assert written.checkpoint_location == "s3://bucket/job"
    assert written.options == {"checkpointLocation": "s3://bucket/job", "path": "some/where"}


def test_an_aggregation_is_written_in_update_mode():
    """D6: each change of a key is a row."""
    counted = events().groupBy("user").count().writeStream.format("nowhere")

    assert counted.start().output_mode == "update"
    with pytest.raises(JobRejected, match='use outputMode\\("update"\\)'):
        counted.outputMode("append").start()


def test_options_are_found_whatever_their_case():
    options = Options("any", {"rowsPerSecond": "5", "Flag": "TRUE", "wait": "2 s"})

    assert options["rowspersecond"] == "5"
    assert options.integer("ROWSPERSECOND", 1) == 5
    assert options.flag("flag", default=False) is True
    assert options.duration_ms("wait", 0) == 2000
    assert options.required("WAIT") == "2 s"
    assert len(options) == 3


def test_options_that_are_not_given_have_their_defaults():
    options = Options("any")

    assert options.integer("n", 7) == 7
    assert options.flag("f", default=True) is True
    assert options.duration_ms("d", 9) == 9
    assert options.text("t", "x") == "x"
    assert options.schema is None


def test_what_every_option_is_asked_for_is_not_refused():
    options = Options("any", {"a": "1"}, pa.schema([("a", pa.int64())]))
    dict(options)
    assert options.schema is not None

    options.refuse_unread()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: reader().format("evnts").load(),
            (
                "there is no source 'evnts': known are events, json, parquet. "
                "Remedy: did you mean 'events'? If not, choose one of these."
            ),
        ),
        (
            lambda: reader().load(),
            "no source was named: known are events, json, parquet. Remedy: add .format(…).",
        ),
        (
            lambda: events().writeStream.format("kafka").start(),
            "there is no sink 'kafka': known are nowhere. Remedy: choose one of these.",
        ),
        (
            lambda: tuned_reader().load(),
            (
                "format 'tuned' needs the option 'topic': it has no default. "
                'Remedy: add .option("topic", …).'
            ),
        ),
        (
            lambda: tuned_reader().options(topic="t", rowsPerSecnd=5).load(),
            (
                "format 'tuned' has no option 'rowsPerSecnd': its options are: followlinks, "
                "pollinterval, rowspersecond, topic. Remedy: did you mean 'rowspersecond'? "
                "If not, remove it."
            ),
        ),
        (
            lambda: tuned_reader().options(topic="t", rowsPerSecond="many").load(),
            (
                "format 'tuned', option rowsPerSecond = many: this is not a whole number. "
                'Remedy: write one, such as "100".'
            ),
        ),
        (
            lambda: tuned_reader().options(topic="t", followLinks="maybe").load(),
            (
                "format 'tuned', option followLinks = maybe: this is neither true nor false. "
                "Remedy: write true or false."
            ),
        ),
        (
            lambda: tuned_reader().options(topic="t", pollInterval="soon").load(),
            (
                "format 'tuned', option pollInterval = soon: this is not a duration. "
                'Remedy: write a whole number and a unit (ms, s, min, h, d), as in "10 s".'
            ),
        ),
        (
            lambda: tuned_reader().option("topic", "t").schema("a int").load(),
            (
                "format 'tuned' knows its schema: schema(…) would have no effect. "
                "Remedy: leave out schema(…)."
            ),
        ),
        (
            lambda: events().writeStream.outputMode("complete"),
            (
                "output mode 'complete' is not supported: Weir knows append, update. "
                "Remedy: use one of these."
            ),
        ),
    ],
)
def test_a_refusal_names_format_option_value_reason_and_remedy(wrong, message):
    """U3."""
    with pytest.raises(JobRejected) as rejected:
        wrong()
    assert str(rejected.value) == message


def test_the_value_of_a_secret_is_not_shown():
    """X4."""
    options = Options("any", {"password": "hunter2"})

    assert "hunter2" not in str(options.refusal("password", "too short", "use a longer one"))
