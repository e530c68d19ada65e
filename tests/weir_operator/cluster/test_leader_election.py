"""Only one operator leads, and a leader that cannot renew stops before the next may begin."""

import asyncio

import pytest

from fake_api_server import FakeApiServer
from weir.errors import Fenced
from weir_operator.cluster import leader_election as leases
from weir_operator.cluster.api_paths import LEASES, NamespacedName
from weir_operator.cluster.leader_election import GRANTED_S, LeaderElector

KEY = NamespacedName("weir-system", "weir-operator")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(leases, "RETRY_S", 0.0)


class Clock:
    """Time that passes at each reading, or on request."""

    def __init__(self, step=0.0):
        self.time, self.step = 0.0, step

    def __call__(self):
        self.time += self.step
        return self.time


def holder(api):
    return api.objects[LEASES.object_path(KEY)]["spec"]["holderIdentity"]


def test_the_first_one_leads():
    """K9: leader election."""
    api = FakeApiServer()
    asyncio.run(LeaderElector(api, KEY, "a").acquire())
    assert holder(api) == "a"


def test_a_second_one_waits_until_the_lease_was_not_renewed_for_its_time():
    """K9: by the waiting one's own clock."""
    api, clock = FakeApiServer(), Clock(step=1.0)
    asyncio.run(LeaderElector(api, KEY, "a").acquire())

    asyncio.run(LeaderElector(api, KEY, "b", clock).acquire())

    assert holder(api) == "b"
    assert clock.time > GRANTED_S


def test_one_that_comes_again_under_its_name_goes_on_at_once():
    """K9: a restart of the leader is no change of leadership."""
    api, clock = FakeApiServer(), Clock()
    asyncio.run(LeaderElector(api, KEY, "a").acquire())
    asyncio.run(LeaderElector(api, KEY, "a", clock).acquire())
    assert api.objects[LEASES.object_path(KEY)]["spec"]["leaseTransitions"] == 1


def test_a_leader_that_lost_its_lease_stops():
    """K9 C17: an operator that is no longer the leader changes nothing."""
    api = FakeApiServer()
    elector = LeaderElector(api, KEY, "a")
    asyncio.run(elector.acquire())
    api.objects[LEASES.object_path(KEY)]["spec"]["holderIdentity"] = "b"
    api.put(LEASES.object_path(KEY), api.objects[LEASES.object_path(KEY)])

    with pytest.raises(Fenced, match="held by b"):
        asyncio.run(elector.renew_forever())


def test_a_leader_that_cannot_renew_stops():
    """K9: before its lease runs out."""
    api, clock = FakeApiServer(), Clock(step=4.0)
    elector = LeaderElector(api, KEY, "a", clock)
    asyncio.run(elector.acquire())
    api.is_away = True

    with pytest.raises(Fenced, match="not renewed"):
        asyncio.run(elector.renew_forever())


def test_a_leader_that_leaves_lets_the_next_begin_at_once():
    """K9: an upgrade of the operator is no outage."""
    api = FakeApiServer()
    elector = LeaderElector(api, KEY, "a")
    asyncio.run(elector.acquire())
    asyncio.run(elector.release())
    asyncio.run(LeaderElector(api, KEY, "b", Clock()).acquire())
    assert holder(api) == "b"
