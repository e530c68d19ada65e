"""Learns which states a function has, by letting a copy of it declare them.

The graph must know before anything runs: an operator with union state is restarted and finishes as
a whole (spec C14). So ``init`` is called twice, here and in each subtask, through the same handle;
only what the handle hands out differs. Here that is a thing that refuses to be used.
"""

import copy
import re
from collections.abc import Callable
from typing import Any, NoReturn

import pyarrow as pa

from weir.core.snapshots import Redistribution
from weir.dataflow.physical import FunctionHead, StateDeclaration
from weir.dataflow.process_functions import (
    BroadcastProcessFunction,
    BroadcastState,
    ListState,
    ProcessFunction,
)
from weir.dataflow.types import SchemaLike, schema_of
from weir.errors import JobRejected

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Make = Callable[[StateDeclaration], Any]
"""Makes what a function is handed for a state that it declares."""


class Declarations:
    """The handle of ``init``: notes what is declared, until it is sealed."""

    def __init__(self, function: str, make: Make, *, is_connected: bool) -> None:
        self._function = function
        self._make = make
        self._is_connected = is_connected
        self._is_sealed = False
        self.declared: dict[str, StateDeclaration] = {}
        self.deleted: set[str] = set()

    def getListState(self, stateName: str, schema: SchemaLike) -> ListState:  # noqa: N802, N803
        state: ListState = self._declare(stateName, Redistribution.SPLIT, pa.schema([]), schema)
        return state

    def getUnionListState(  # noqa: N802
        self,
        stateName: str,  # noqa: N803
        schema: SchemaLike,
    ) -> ListState:
        state: ListState = self._declare(stateName, Redistribution.UNION, pa.schema([]), schema)
        return state

    def getBroadcastState(  # noqa: N802
        self,
        stateName: str,  # noqa: N803
        userKeySchema: SchemaLike,  # noqa: N803
        valueSchema: SchemaLike,  # noqa: N803
    ) -> BroadcastState:
        if not self._is_connected:
            self._refuse(
                stateName,
                "broadcast state is made from a broadcast stream, and there is none",
                "use stream.connect(rules.broadcast()).process(…)",
            )
        keys = schema_of(userKeySchema).remove_metadata()
        state: BroadcastState = self._declare(
            stateName, Redistribution.BROADCAST, keys, valueSchema
        )
        return state

    def deleteIfExists(self, stateName: str) -> None:  # noqa: N802, N803
        self._expect_open(stateName)
        if stateName in self.declared:
            self._refuse(stateName, "it is declared and deleted", "do one of the two")
        self.deleted.add(stateName)

    def seal(self) -> None:
        """``init`` is over."""
        self._is_sealed = True

    def _declare(self, name: str, kind: Redistribution, keys: pa.Schema, values: SchemaLike) -> Any:  # noqa: ANN401 - whatever this handle hands out
        self._expect_open(name)
        if not _NAME.fullmatch(name):
            self._refuse(
                name,
                "up to 100 letters, digits, dots, dashes and underscores make a name",
                "choose another",
            )
        if name in self.declared or name in self.deleted:
            self._refuse(name, "it is declared twice or deleted too", "give each state its name")
        state = StateDeclaration(name, kind, keys, schema_of(values).remove_metadata())
        self._check_columns(state)
        self.declared[name] = state
        return self._make(state)

    def _check_columns(self, state: StateDeclaration) -> None:
        names = state.columns.names
        twice = next((column for column in names if names.count(column) > 1), "")
        if twice:
            self._refuse(state.name, f"two columns are called {twice!r}", "rename one of them")
        needs_key = state.kind is Redistribution.BROADCAST
        if not state.values.names or (needs_key and not state.keys.names):
            self._refuse(state.name, "a schema of it is empty", "declare a column at least")

    def _expect_open(self, name: str) -> None:
        if self._is_sealed:
            self._refuse(
                name,
                "states are declared in init, and that is over",
                "declare it there and keep what you get in an attribute",
            )

    def _refuse(self, name: str, cause: str, remedy: str) -> NoReturn:
        raise JobRejected(
            f"{self._function} cannot declare state {name!r}",
            cause,
            remedy,
        )


class NotThereYet:
    """What a function is handed for a state while its stream is only described."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, asked: str) -> NoReturn:
        raise JobRejected(
            f"state {self._name!r}: {asked} cannot be called in init",
            "init declares states and has none yet",
            "read and change the state in open or later",
        )


def function_head(function: object, output: pa.Schema, *, is_connected: bool) -> FunctionHead:
    """Check what ``process`` was given and learn its states."""
    fit = _checked(function, is_connected=is_connected)
    name = type(fit).__name__
    handle = Declarations(name, lambda state: NotThereYet(state.name), is_connected=is_connected)
    copied = _copied(fit)
    try:
        copied.init(handle)
    except JobRejected:
        raise
    except Exception as error:  # the user's code may raise anything
        raise JobRejected(
            f"process: {name}.init failed where the stream is described",
            f"{type(error).__name__}: {error}",
            "declare states in init and nothing else, and begin everything else in open",
        ) from error
    return FunctionHead(fit, tuple(handle.declared.values()), output)


def _copied(function: ProcessFunction) -> ProcessFunction:
    try:
        return copy.deepcopy(function)
    except Exception as error:  # copying calls code of the user's objects
        raise JobRejected(
            f"process: {type(function).__name__} cannot be copied, and every subtask has a copy",
            str(error),
            "make what is inside in open, where it is used",
        ) from error


def _checked(function: object, *, is_connected: bool) -> ProcessFunction:
    wanted = BroadcastProcessFunction if is_connected else ProcessFunction
    if isinstance(function, type):
        raise JobRejected(
            f"process: {function.__name__} is a class",
            "process takes an object",
            f"make an object of it, {function.__name__}()",
        )
    if not isinstance(function, wanted):
        raise JobRejected(
            f"process: a {type(function).__name__} is no {wanted.__name__}",
            f"its class does not derive from {wanted.__name__}",
            f"derive it from weir.{wanted.__name__}",
        )
    if not is_connected and isinstance(function, BroadcastProcessFunction):
        raise JobRejected(
            f"process: {type(function).__name__} wants a broadcast stream beside this one",
            "this stream is not connected to any",
            "use stream.connect(rules.broadcast()).process(…)",
        )
    return function
