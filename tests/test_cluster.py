"""``./dev cluster`` on unsuitable machines: an error with the cause and the remedy.

The machines are poor on purpose and have stand-ins for what would change the real one, so these
tests start no cluster. What a cluster can do is seen in ``e2e``.
"""

import fcntl
import shlex

import pytest

from bare_machine import bare_machine

TOOLS = ("bash", "cat", "dirname", "env", "flock", "grep", "mkdir", "readlink", "rm", "sed", "tail")
TOOLS += ("cp", "tee", "timeout", "sort", "cut", "mktemp", "touch")

PYTHON = """#!/usr/bin/env bash
case "$*" in
  *hashlib*) echo "3.11 0123456789ab" ;;
  "-m venv "*) mkdir -p "${@: -1}/bin" && cp "$0" "${@: -1}/bin/python" ;;
esac
"""

NATIVE_PROGRAMS = ("containerd", "runc", "iptables", "buildah", "mmdebstrap", "openssl", "curl")


def saying(text, code=0):
    return f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(text)}\nexit {code}\n"


SILENT = "#!/bin/sh\n"
FAILING = "#!/bin/sh\nexit 1\n"
RECORDING = '#!/bin/sh\necho "${0##*/} $*" >>"$HOME/asked"\n'


@pytest.fixture
def machine(tmp_path):
    return bare_machine(tmp_path / "a home with spaces", TOOLS)


@pytest.fixture
def fit(machine):
    """One on which everything is as it must be; a test takes one thing away."""
    machine.has("python3", PYTHON)
    machine.has("id", saying("0"))
    machine.has("df", saying("90000"))
    machine.has("awk", saying("16000"))
    machine.has("find", SILENT)
    machine.has("ss", SILENT)
    machine.has("ip", '#!/bin/sh\n[ "$1" != link ]\n')
    machine.has("apt-get", SILENT)  # it has all that it is asked for
    for program in NATIVE_PROGRAMS:
        machine.has(program, SILENT)
    return machine


@pytest.fixture
def docked(fit):
    """One with a Docker engine, and all that goes with it."""
    for program in ("docker", "kubectl", "helm"):
        fit.has(program, RECORDING)
    fit.has("kind", RECORDING + '[ "$1" != get ] || cat "$HOME/clusters"\n')
    (fit.home / "clusters").write_text("")
    return fit


def refused(answer):
    assert answer.returncode == 1
    return answer.stderr


def test_help_needs_nothing_and_names_every_command(machine):
    answer = machine.dev("cluster", "help")
    assert answer.returncode == 0
    for command in ("up", "down", "status", "load", "env", "node"):
        assert f"\n  {command} " in answer.stdout


@pytest.mark.parametrize("arguments", [["ip"], ["up", "--with-s4"], ["node", "kill", "3"]])
def test_what_does_not_exist_is_named(fit, arguments):
    answer = fit.dev("cluster", *arguments)
    assert answer.returncode == 2
    assert f"'{arguments[-1]}'" in answer.stderr or "cluster ip" in answer.stderr


def test_a_user_who_is_not_root_sees_both_remedies(fit):
    fit.has("id", saying("1000"))
    message = refused(fit.dev("cluster", "up"))
    assert "sudo --shell" in message
    assert "Docker" in message


def test_a_full_disk_is_named_with_what_is_needed(fit):
    fit.has("df", saying("1234"))
    message = refused(fit.dev("cluster", "up"))
    assert "1234 MB free; 20000 MB are needed" in message
    assert "WEIR_CACHE" in message


def test_too_little_memory_is_named_with_what_is_needed(fit):
    fit.has("awk", saying("800"))
    assert "800 MB of memory are available" in refused(fit.dev("cluster", "up"))


def test_a_machine_without_docker_and_containerd_sees_what_to_install(fit):
    fit.has("apt-get", saying("E: nothing is for sale", 100))
    for program in ("containerd", "runc"):
        (fit.home / "bin" / program).unlink()
    message = refused(fit.dev("cluster", "up"))
    assert "could not install containerd runc" in message
    assert "Install them yourself" in message


def test_a_port_in_use_is_named_with_its_user(fit):
    fit.has("ss", saying('LISTEN 127.0.0.1:23790 users:(("theirs",pid=7))'))
    message = refused(fit.dev("cluster", "up"))
    assert "port 23790" in message
    assert "theirs" in message


def test_a_network_that_is_taken_is_shown(fit):
    fit.has("ip", '#!/bin/sh\n[ "$1" != link ] && echo "10.96.0.0/12 dev vpn0"\n')
    assert "10.96.0.0/12 dev vpn0" in refused(fit.dev("cluster", "up"))


def left_by_a_cluster(machine):
    run = machine.home / ".cache" / "weir" / "cluster" / "run"
    (run / "pki").mkdir(parents=True)
    return run


def test_what_a_machine_left_that_was_switched_off_is_cleared_away(fit):
    run = left_by_a_cluster(fit)
    assert "went down with its machine" in fit.dev("cluster", "up").stderr
    assert not (run / "pki").exists()


def test_a_half_dead_cluster_is_reported_with_its_dead_parts(fit):
    left_by_a_cluster(fit)
    fit.has("find", '#!/bin/sh\ncase "$1" in */node2) ;; *) echo 4711 ;; esac\n')
    message = refused(fit.dev("cluster", "up"))
    assert "half dead" in message
    assert "etcd" in message
    assert "node2" in message
    assert "./dev cluster down" in message


def test_a_cluster_from_elsewhere_is_not_touched(fit):
    fit.has("find", saying("4711"))
    message = refused(fit.dev("cluster", "up"))
    assert "was not started from" in message
    assert "./dev cluster down" in message


@pytest.mark.parametrize("arguments", [["status"], ["load"], ["node", "kill", "1"]])
def test_without_a_cluster_the_way_to_one_is_shown(fit, arguments):
    assert "'./dev cluster up' starts one" in refused(fit.dev("cluster", *arguments))


def test_two_do_not_work_on_one_cluster(fit):
    store = fit.home / ".cache" / "weir" / "cluster"
    store.mkdir(parents=True)
    with (store / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "another './dev cluster' is at work" in refused(fit.dev("cluster", "up"))


def test_what_a_shell_needs_survives_spaces(fit):
    line = fit.dev("cluster", "env").stdout
    words = shlex.split(line)
    store = fit.home / ".cache" / "weir" / "cluster"
    assert words == ["export", f"KUBECONFIG={store}/run/kubeconfig", f"PATH={store}/bin:$PATH"]


def test_a_docker_engine_is_used_through_kind(docked):
    docked.dev("cluster", "up", "--without-s3")
    asked = (docked.home / "asked").read_text()
    assert "kind create cluster --name weir --config" in asked
    assert "--kubeconfig" in asked


def test_an_engine_that_does_not_answer_is_no_engine(fit):
    fit.has("docker", FAILING)
    fit.has("id", saying("1000"))
    assert "'docker info' must succeed" in refused(fit.dev("cluster", "up"))


@pytest.mark.parametrize(
    ("happening", "asked"),
    [
        ("kill", "docker kill weir-worker2"),
        ("start", "docker start weir-worker2"),
        ("freeze", "docker pause weir-worker2"),
        ("thaw", "docker unpause weir-worker2"),
        ("cut", "docker exec weir-worker2 iptables -I INPUT -i eth0 -j DROP"),
        ("join", "docker exec weir-worker2 iptables -D FORWARD -o eth0 -j DROP"),
    ],
)
def test_what_happens_to_a_node_of_kind_happens_to_its_container(docked, happening, asked):
    (docked.home / "clusters").write_text("weir\n")
    kubeconfig = docked.home / ".cache" / "weir" / "cluster" / "run" / "kubeconfig"
    kubeconfig.parent.mkdir(parents=True)
    kubeconfig.touch()
    assert docked.dev("cluster", "node", happening, "2").returncode == 0
    assert asked in (docked.home / "asked").read_text().splitlines()
