"""Functions with operator state become stages that know their states and their inputs."""

import threading
from textwrap import dedent

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from described_streams import events, graph_of, picture
from weir.core.snapshots import Redistribution
from weir.dataflow.physical import FunctionHead
from weir.dataflow.pickle_check import check_picklable
from weir.dataflow.process_functions import BroadcastProcessFunction, ProcessFunction
from weir.dataflow.types import schema_of
from weir.errors import JobRejected


class Remembers(ProcessFunction):
    """Declares the states that a test gives."""

    def __init__(self, declare=lambda _: None):
        self.declare = declare

    def init(self, handle):
        self.declared = self.declare(handle)

    def processBatch(self, batch):  # noqa: N802
        yield batch


class Follows(BroadcastProcessFunction):
    """Keeps the limit of each user."""

    def init(self, handle):
        self.limits = handle.getBroadcastState("limits", "user string", "most long")

    def processBatch(self, batch):  # noqa: N802
        yield batch


def rules():
    return events("user string, most long")


def processed(declare):
    return events().process(Remembers(declare), "value long")


def head_of(stream):
    (head,) = [s.head for s in graph_of(stream).stages if isinstance(s.head, FunctionHead)]
    return head


def refusal(act):
    with pytest.raises(JobRejected) as refused:
        act()
    return str(refused.value)


# The graph


def test_a_function_stands_between_a_stream_and_one_that_is_broadcast_to_it():
    """D2: connect(rules.broadcast()).process(…), and steps behind it fold into it."""
    limited = events().connect(rules().broadcast()).process(Follows(), "value long").uid("limited")

    assert (
        picture(graph_of(limited.filter("value > 3")))
        == dedent("""
        source-1 x2
        source-2 x2
        limited x2 | filter(value > 3)
          forward from source-1
          broadcast from source-2
        sink-4 x2
          forward from limited
    """).strip()
    )


def test_a_function_knows_which_edges_are_its_broadcast_input():
    """D2: also where the broadcast stream is a union, or comes from the same source."""
    both = rules().union(rules())
    graph = graph_of(events().connect(both.broadcast()).process(Follows(), "value long"))
    head = graph.stages[3].head

    assert head.broadcast == ("source-2->function-4", "source-3->function-4")

    stream = events()
    twice = stream.connect(stream.broadcast()).process(Follows(), "value long")
    assert head_of(twice).broadcast == ("source-1->function-2#2",)


def test_only_the_main_input_says_how_wide_a_function_is():
    narrow = rules().setParallelism(1).repartition(5).broadcast()
    stream = events().setParallelism(3).connect(narrow).process(Follows(), "value long")

    assert "function-3 x3\n  forward from source-1\n  broadcast" in picture(graph_of(stream))


def test_a_function_may_be_wider_than_what_comes_before_it():
    stream = processed(lambda _: None).setParallelism(4)

    assert "function-2 x4\n  rebalance from source-1" in picture(graph_of(stream))


def test_the_states_of_a_function_are_known_before_it_runs():
    """S1."""

    def declare(handle):
        handle.getListState("held", "value long")
        handle.getUnionListState("seen", "value long")

    states = head_of(processed(declare)).states

    assert [(state.name, state.kind) for state in states] == [
        ("held", Redistribution.SPLIT),
        ("seen", Redistribution.UNION),
    ]
    limited = events().connect(rules().broadcast()).process(Follows(), "value long")
    (limits,) = head_of(limited).states
    assert limits.columns == schema_of("user string, most long")


@pytest.mark.parametrize("kind", ["List", "UnionList"])
def test_the_topology_shows_which_operators_have_union_state(kind):
    """C14: an operator with union state finishes as a whole, so decisions must know of it."""
    declare = lambda handle: getattr(handle, f"get{kind}State")("seen", "n long")  # noqa: E731
    operator = graph_of(processed(declare)).topology.operators[1]

    assert operator.has_union_state == (kind == "UnionList")


def test_the_object_of_the_user_stays_as_it_was():
    function = Remembers(lambda handle: handle.getListState("held", "n long"))

    events().process(function, "value long")

    assert not hasattr(function, "declared")


def test_a_function_travels_to_the_slots():
    check_picklable(graph_of(processed(lambda _: None)), cloudpickle.dumps)


class Stubborn:
    """Can be copied and not be sent."""

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("this one stays here")


def test_a_function_that_cannot_travel_is_refused_by_name():
    function = Remembers()
    function.client = Stubborn()
    graph = graph_of(events().process(function, "value long").uid("held"))

    words = refusal(lambda: check_picklable(graph, cloudpickle.dumps))

    assert words.startswith("operator 'held': its function cannot travel to the slots, because of")
    assert "attribute 'client', a Stubborn: this one stays here" in words


# What is refused


@pytest.mark.parametrize(
    ("describe", "words"),
    [
        (lambda: events().connect(rules()), "write connect(rules.broadcast())"),
        (lambda: events().connect(rules().broadcast().filter("most > 3")), "as its last step"),
        (lambda: events().broadcast().connect(rules()), "write stream.connect(rules.broadcast())"),
        (lambda: events().process(Remembers, "n long"), "make an object of it, Remembers()"),
        (lambda: events().process(len, "n long"), "derive it from weir.ProcessFunction"),
        (lambda: events().process(Follows(), "n long"), "wants a broadcast stream"),
        (
            lambda: events().connect(rules().broadcast()).process(Remembers(), "n long"),
            "a Remembers is no BroadcastProcessFunction",
        ),
        (lambda: events().process(Remembers(), "n lung"), "'lung' is no type"),
        (
            lambda: events().connect(rules().broadcast()).process(Follows(), "n long").broadcast()
            .uid("limited"),
            "a union or a redistribution",
        ),
    ],
)  # fmt: skip
def test_a_wrong_use_is_refused_with_the_remedy(describe, words):
    """U3: by the method that would make it so."""
    assert words in refusal(describe)


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (
            lambda h: (h.getListState("held", "n long"), h.getUnionListState("held", "n long")),
            "give each state its name",
        ),
        (lambda h: h.getListState("my rows", "n long"), "make a name"),
        (lambda h: h.getListState("held", "n lung"), "'lung' is no type"),
        (lambda h: h.getListState("held", pa.schema([])), "a schema of it is empty"),
        (lambda h: h.getBroadcastState("limits", "a int", "b int"), "use stream.connect("),
        (lambda h: (h.deleteIfExists("held"), h.getListState("held", "n long")), "deleted too"),
        (lambda h: (h.getListState("held", "n long"), h.deleteIfExists("held")), "one of the two"),
        (lambda h: list(h.getListState("held", "n long").get()), "read and change the state"),
        (lambda _: 1 / 0, "Remembers.init failed where the stream is described: ZeroDivision"),
    ],
)  # fmt: skip
def test_a_state_that_cannot_be_is_refused_where_the_stream_is_described(declare, words):
    """U3."""
    assert words in refusal(lambda: processed(declare))


def test_a_broadcast_state_has_each_column_once():
    class Confused(Follows):
        def init(self, handle):
            handle.getBroadcastState("limits", "user string", "user string")

    connected = events().connect(rules().broadcast())

    words = refusal(lambda: connected.process(Confused(), "value long"))

    assert words == (
        "Confused cannot declare state 'limits': two columns are called 'user'. "
        "Remedy: rename one of them."
    )


def test_a_function_that_holds_what_cannot_be_copied_is_refused():
    function = Remembers()
    function.lock = threading.Lock()

    assert "make what is inside in open" in refusal(lambda: events().process(function, "n long"))


# Time


def timed(stream):
    return stream.withWatermark("ts", "1 s")


class Counter:
    """What a processor is known by."""

    def init(self, handle):
        """Nothing is kept."""

    def handleInputRows(self, key, rows, times):  # noqa: N802
        """Nothing comes of it."""


@pytest.mark.parametrize(("main", "side", "fits"), [(1, 1, True), (1, 0, False), (0, 1, False)])
def test_event_time_needs_a_watermark_on_both_inputs_of_a_function(main, side, fits):
    """D4: time is the least of both, so an input without a watermark holds it for ever."""
    stream = timed(events()) if main else events()
    other = timed(events()) if side else events()
    connected = stream.connect(other.broadcast()).process(Follows(), "user string")

    def use():
        connected.groupBy("user").transformWithState(Counter(), "n long", timeMode="EventTime")

    if fits:
        use()
    else:
        assert "time mode EventTime needs a watermark" in refusal(use)


def test_a_watermark_behind_a_function_is_refused():
    stream = events().process(Remembers(), "ts timestamp")

    assert "a function stands between" in refusal(lambda: timed(stream))
