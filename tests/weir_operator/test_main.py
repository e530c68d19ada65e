"""Every setting of the operator is a flag, and an environment variable for a Deployment."""

from datetime import timedelta

import pytest

from weir_operator.__main__ import read_settings


def test_an_operator_without_settings_serves_the_whole_cluster():
    """K9: nothing must be given inside a cluster."""
    settings = read_settings([])
    assert settings.namespaces == ()
    assert settings.kubeconfig is None
    assert (settings.driver_port, settings.lost_after) == (8081, timedelta(seconds=40))


def test_flags_win_over_the_environment(monkeypatch):
    """K9: a Deployment sets variables, a person writes flags."""
    monkeypatch.setenv("WEIR_OPERATOR_NAMESPACES", "shop, bank")
    monkeypatch.setenv("WEIR_OPERATOR_DRIVER_PORT", "9000")
    assert read_settings([]).namespaces == ("shop", "bank")
    assert read_settings([]).driver_port == 9000
    assert read_settings(["--namespaces", "shop"]).namespaces == ("shop",)


def test_peers_of_drivers_are_given_as_json(monkeypatch):
    """K9: without any, jobs get no NetworkPolicy."""
    monkeypatch.setenv("WEIR_OPERATOR_DRIVER_PEERS", '[{"podSelector": {}}]')
    assert read_settings([]).driver_peers == ({"podSelector": {}},)
    monkeypatch.delenv("WEIR_OPERATOR_DRIVER_PEERS")
    assert read_settings([]).driver_peers is None


@pytest.mark.parametrize("peers", ["nothing", "{}", "[1]", "[{}]"])
def test_peers_that_are_none_are_refused(peers, capsys):
    """K9: an empty peer is refused by the API server, a mapping is none."""
    with pytest.raises(SystemExit):
        read_settings(["--driver-peers", peers])

    assert "--driver-peers" in capsys.readouterr().err
