"""A repeated Event increments its count, and a failed one blocks nothing."""

import asyncio
from datetime import UTC, datetime

from fake_api_server import FakeApiServer
from reconciled_job import a_job
from weir_operator.cluster.api_paths import JOBS
from weir_operator.cluster.event_recorder import record_event
from weir_operator.cluster.resource_object import ResourceObject
from weir_operator.plan.cluster_actions import EmitEvent

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reported(api, *events):
    for event in events:
        asyncio.run(record_event(api, JOBS, ResourceObject(a_job()), event, NOW))
    return [body for path, body in api.objects.items() if "/events/" in path]


def test_saying_it_twice_counts_one_object_up():
    """K7: a job that restarts for a day leaves no heap of Events."""
    again = EmitEvent("DriverLost", "orders-driver-1 is gone", is_warning=True)
    (event,) = reported(FakeApiServer(), again, again)
    assert (event["count"], event["type"]) == (2, "Warning")
    assert event["involvedObject"]["uid"] == "uid-1"


def test_another_word_is_another_event():
    """K7: everything a person would ask about."""
    assert len(reported(FakeApiServer(), EmitEvent("Stable", "a"), EmitEvent("Stable", "b"))) == 2


def test_an_event_that_may_not_be_written_holds_nothing_up():
    """K10: a word is no effect."""
    api = FakeApiServer(forbidden={("create", "events")})
    assert reported(api, EmitEvent("Stable", "a")) == []
