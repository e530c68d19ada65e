"""A description becomes stages and edges: as few as possible, the same in every run."""

import pickle
import threading
from textwrap import dedent

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from described_streams import EVENTS, ended, events, graph_of, picture
from weir.core.ids import EdgeId, OperatorId
from weir.core.topology import Edge, EdgeKind, Operator, Topology
from weir.dataflow import functions as F  # noqa: N812
from weir.dataflow.graph import GraphDefaults, admit, build
from weir.dataflow.physical import JobGraph, SourceHead
from weir.dataflow.pickle_check import check_picklable
from weir.errors import JobRejected


def same(batches):
    yield from batches


def shape(text):
    return dedent(text).strip()


def test_steps_without_state_fold_into_the_stage_before_them():
    stream = (
        events().filter("value > 3").selectExpr("value * 2 AS twice").mapInArrow(same, "twice long")
    )

    assert picture(graph_of(stream)) == shape("""
        source-1 x2 | filter(value > 3) | project(twice) | mapInArrow(same)
        sink-2 x2
          forward from source-1
    """)


def test_a_grouped_stream_is_hashed_by_its_keys():
    """D2: groupBy brings equal keys together."""
    stream = events().filter("value > 3").groupBy("user").agg(F.sum("value").alias("total"))

    assert picture(graph_of(stream.filter("total > 9"))) == shape("""
        source-1 x2 | filter(value > 3)
        aggregate-2 x2 | filter(total > 9)
          hash from source-1 user
        sink-3 x2
          forward from aggregate-2
    """)


def test_a_step_after_a_union_gets_a_stage_of_its_own():
    both = events().filter("value > 3").union(events()).filter("price > 1")

    assert picture(graph_of(both)) == shape("""
        source-1 x2 | filter(value > 3)
        source-2 x2
        relay-3 x2 | filter(price > 1)
          forward from source-1
          forward from source-2
        sink-4 x2
          forward from relay-3
    """)


def test_a_union_feeds_a_sink_or_an_aggregation_directly():
    both = events().union(events())

    assert picture(graph_of(both.groupBy("user").count(), both)) == shape("""
        source-1 x2
        source-2 x2
        aggregate-3 x2
          hash from source-1 user
          hash from source-2 user
        sink-4 x2
          forward from aggregate-3
        sink-5 x2
          forward from source-1
          forward from source-2
    """)


def test_a_stream_that_is_used_twice_is_one_stage_with_two_consumers():
    once = events().filter("value > 3")

    assert picture(graph_of(once.filter("price > 1"), once.filter("price < 1"))) == shape("""
        source-1 x2 | filter(value > 3)
        relay-2 x2 | filter(price > 1)
          forward from source-1
        sink-3 x2
          forward from relay-2
        relay-4 x2 | filter(price < 1)
          forward from source-1
        sink-5 x2
          forward from relay-4
    """)


def test_a_stream_united_with_itself_has_two_edges():
    stream = events()

    graph = graph_of(stream.union(stream))

    assert [edge.id for edge in graph.topology.edges] == ["source-1->sink-2", "source-1->sink-2#2"]


def test_a_step_with_a_parallelism_of_its_own_gets_a_stage_and_a_rebalanced_edge():
    stream = events().filter("value > 3").setParallelism(4).filter("price > 1")

    assert picture(graph_of(stream)) == shape("""
        source-1 x2
        relay-2 x4 | filter(value > 3) | filter(price > 1)
          rebalance from source-1
        sink-3 x2
          rebalance from relay-2
    """)


@pytest.mark.parametrize(
    ("redistributed", "edge"),
    [
        (lambda s: s.repartition(3), "rebalance from source-1"),
        (lambda s: s.repartition(3, "user"), "hash from source-1 user"),
        (lambda s: s.rescale().filter("true").setParallelism(3), "rescale from source-1"),
        (lambda s: s.broadcast().filter("true").setParallelism(3), "broadcast from source-1"),
        (lambda s: s.global_().filter("true").setParallelism(3), "global from source-1"),
        (lambda s: s.broadcast().repartition(3), "rebalance from source-1"),
    ],
)
def test_a_redistribution_is_the_edge_to_what_comes_next(redistributed, edge):
    lines = picture(graph_of(redistributed(events()))).splitlines()

    assert lines[1].endswith("x3") or " x3 |" in lines[1]
    assert lines[2].strip() == edge


def test_a_repartition_sets_the_width_of_what_comes_next():
    assert picture(graph_of(events().repartition(5).filter("value > 3"))) == shape("""
        source-1 x2
        relay-2 x5 | filter(value > 3)
          rebalance from source-1
        sink-3 x2
          rebalance from relay-2
    """)


def test_users_uids_are_the_operators_ids():
    """D2: state is found by uid."""
    stream = events().uid("clicks").groupBy("user").count().uid("per-user")
    written = stream.writeStream.format("nowhere").uid("out").setParallelism(1).finished()

    graph = build([written], GraphDefaults(2))

    assert [stage.operator for stage in graph.stages] == ["clicks", "per-user", "out"]
    assert [o.parallelism for o in graph.topology.operators] == [2, 2, 1]


def test_generated_ids_are_the_same_in_every_build():
    def described():
        return events().union(events()).groupBy("user").count()

    assert picture(graph_of(described())) == picture(graph_of(described()))


def test_sources_have_a_part_in_the_driver_and_sinks_are_sinks():
    source, sink = graph_of(events()).topology.operators

    assert (source.is_coordinated, source.is_sink) == (True, False)
    assert (sink.is_coordinated, sink.is_sink) == (False, True)


def test_max_parallelism_is_asked_for_or_defaults_to_the_jobs_or_is_derived():
    """S11."""
    counted = events().groupBy("user").count().setMaxParallelism(64)

    def most(defaults):
        return [o.max_parallelism for o in build([ended(counted)], defaults).topology.operators]

    assert most(GraphDefaults(2)) == [128, 64, 128]
    assert most(GraphDefaults(2, 256)) == [256, 64, 256]


def test_a_stage_says_what_its_rows_look_like_and_what_people_call_it():
    graph = graph_of(events().selectExpr("value").groupBy("value").count().name("counts"))

    assert [stage.output.names for stage in graph.stages] == [["value"], ["value", "count"], []]
    assert [stage.name for stage in graph.stages] == ["", "counts", ""]


def test_a_name_given_to_a_step_is_its_label():
    graph = graph_of(events().filter("value > 3").name("only large"))

    assert picture(graph).startswith("source-1 x2 | only large")


def test_the_watermark_is_set_on_the_source():
    """D4: watermarks are made where rows are read, also when the column is renamed on the way."""
    stream = events().filter("value > 3").selectExpr("ts AS at", "value")

    graph = graph_of(stream.withWatermark("at", "10 seconds"))

    head = graph.stages[0].head
    assert isinstance(head, SourceHead)
    assert (head.event_time, head.delay_ms) == ("ts", 10_000)


def test_a_graph_travels_by_pickle_and_runs_on_the_other_side():
    graph = pickle.loads(pickle.dumps(graph_of(events().filter("value > 3").selectExpr("value"))))  # noqa: S301
    batch = pa.record_batch(
        {"user": ["a", "b"], "value": [3, 4], "price": [0.0, 0.0], "ts": [0, 0]}
    )
    keep, cut = graph.stages[0].steps

    (kept,) = keep(batch)
    (left,) = cut(kept)

    assert left.to_pydict() == {"value": [4]}


def test_a_function_that_cannot_travel_is_refused_with_the_object_in_its_way():
    lock = threading.Lock()

    def guarded(batches):
        with lock:
            yield from batches

    graph = graph_of(events().mapInArrow(guarded, "value long").uid("guard"))

    with pytest.raises(JobRejected) as rejected:
        check_picklable(graph, cloudpickle.dumps)
    message = str(rejected.value)
    assert "operator 'source-1'" in message
    assert "guarded)" in message
    assert "variable 'lock', a lock" in message


def test_a_processor_that_cannot_travel_is_refused_with_its_attribute():
    class Guarded:
        def __init__(self):
            self.lock = threading.Lock()

        def init(self, handle): ...

        def handleInputRows(self, key, rows, timerValues): ...  # noqa: N802, N803

    graph = graph_of(events().groupBy("user").transformWithState(Guarded(), "n long").uid("guard"))

    with pytest.raises(JobRejected, match=r"operator 'guard': its processor .* attribute 'lock'"):
        check_picklable(graph, cloudpickle.dumps)


def test_a_graph_that_can_travel_is_let_through():
    stream = events().filter("value > 3").mapInArrow(lambda b: b, EVENTS).groupBy("user").count()

    check_picklable(graph_of(stream), cloudpickle.dumps)


def test_a_cycle_is_refused():
    """C20."""
    a, b = OperatorId("a"), OperatorId("b")
    edges = (
        Edge(EdgeId("a->b"), a, b, EdgeKind.FORWARD),
        Edge(EdgeId("b->a"), b, a, EdgeKind.FORWARD),
    )
    graph = JobGraph(Topology((Operator(a, 1), Operator(b, 1)), edges), ())

    with pytest.raises(JobRejected, match="cycle a -> b -> a"):
        admit(graph)


def test_every_reason_for_a_refusal_is_listed():
    wide = events().setParallelism(9).setMaxParallelism(4)
    wider = wide.groupBy("user").count().setParallelism(9).setMaxParallelism(8)

    with pytest.raises(JobRejected) as rejected:
        graph_of(wider)
    assert len(rejected.value.cause.splitlines()) == 2


@pytest.mark.parametrize(
    ("streams", "complaint"),
    [
        (list, "the job writes nothing"),
        (
            lambda: [events().uid("a").groupBy("user").count().uid("a")],
            "uid 'a' is given to 2 operators",
        ),
        (
            lambda: [events().uid("sink-2")],
            "uid 'sink-2' is given to two operators: it is also the name",
        ),
    ],
)
def test_a_graph_without_sinks_or_with_twins_is_refused(streams, complaint):
    with pytest.raises(JobRejected, match=complaint):
        graph_of(*streams())
