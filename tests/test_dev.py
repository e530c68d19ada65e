"""The front door, ``./dev``: sets up once, refuses helpfully, and works from anywhere.

Each test gives it a machine of its own: a PATH with only the tools it may find, a fake Python that
records what it is asked, and an empty cache. So nothing is downloaded and nothing is installed.
"""

import pytest

from bare_machine import bare_machine
from source_tree import ROOT

TOOLS = ("bash", "cat", "cp", "dirname", "env", "flock", "grep", "mkdir", "readlink", "rm", "sed")
TOOLS += ("tail", "tee", "touch")

PYTHON = """#!/usr/bin/env bash
case "$*" in
  *hashlib*) echo "3.11 0123456789ab" ;;
  *ensurepip*) [[ ! -e $HOME/no-ensurepip ]] ;;
  "-m venv "*) mkdir -p "${@: -1}/bin" && cp "$0" "${@: -1}/bin/python" ;;
  "-m pip "*) echo "Collecting numpy==2 (from x)" && [[ ! -e $HOME/offline ]] ;;
  *) printf "%s\\n" "ran: $*" "path: $PYTHONPATH" "in: $PWD" "java: ${SPARK_SUBMIT_OPTS-}" ;;
esac
"""


APT_GET = """#!/usr/bin/env bash
[[ $* == *install* ]] && rm "$HOME/no-ensurepip" && echo "installed ${@: -1}"
"""


def java(version):
    return f"#!/usr/bin/env bash\necho 'openjdk version \"{version}\"' >&2\n"


@pytest.fixture
def machine(tmp_path):
    return bare_machine(tmp_path / "a home with spaces", TOOLS)


@pytest.fixture
def ready(machine):
    machine.has("python3", PYTHON)
    machine.has("java", java("17.0.15"))
    return machine


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"]])
def test_help_needs_nothing_and_names_every_command(machine, arguments):
    answer = machine.dev(*arguments)
    assert answer.returncode == 0
    commands = "demo", "test", "lint", "sim", "bench", "cluster", "e2e", "bare", "lock", "help"
    for command in commands:
        assert f"\n  {command} " in answer.stdout


def test_a_command_that_does_not_exist_is_named_with_those_that_do(machine):
    answer = machine.dev("dmeo")
    assert answer.returncode == 2
    assert "no command 'dmeo'" in answer.stderr
    assert "demo" in answer.stderr


def test_the_first_run_sets_up_and_the_second_does_not(ready):
    assert "numpy==2" in ready.dev("sim").stderr
    assert ready.dev("sim").stderr == ""


def test_a_set_up_that_failed_is_begun_again(ready):
    (ready.home / "offline").touch()
    answer = ready.dev("sim")
    assert answer.returncode == 1
    assert "setup.log" in answer.stderr

    (ready.home / "offline").unlink()
    assert "ran: -m simulation" in ready.dev("sim").stdout


def test_arguments_reach_the_program_with_every_package_on_its_path(ready):
    answer = ready.dev("sim", "--seeds", "3")
    assert "ran: -m simulation --seeds 3\n" in answer.stdout
    folders = ("runtime", "operator", "tests", "tests/support")
    assert f"path: {':'.join(str(ROOT / folder) for folder in folders)}\n" in answer.stdout
    assert f"in: {ROOT}\n" in answer.stdout


def test_the_environment_lives_where_weir_cache_says_even_relatively(ready):
    ready.dev("sim", WEIR_CACHE="my cache")
    assert (ready.home / "my cache" / "venv-0123456789ab" / "ready").exists()


def test_without_python_it_says_what_to_install(machine):
    answer = machine.dev("test")
    assert answer.returncode == 1
    assert "this machine has no python3" in answer.stderr
    assert "sudo apt-get install -y python3 python3-venv" in answer.stderr


def test_an_old_python_is_named_with_what_to_install(machine):
    old = '#!/usr/bin/env bash\n[[ $1 == --version ]] && echo "Python 3.10.12"\n'
    machine.has("python3", old)
    answer = machine.dev("test")
    assert answer.returncode == 1
    assert "this machine has Python 3.10.12" in answer.stderr
    assert "python3.11" in answer.stderr


def test_a_newer_python_is_found_beside_an_old_one(ready):
    ready.has("python3", "#!/usr/bin/env bash\nexit 1\n")
    ready.has("python3.12", PYTHON)
    assert "ran: -m simulation" in ready.dev("sim").stdout


def test_where_there_is_no_apt_the_missing_package_is_named(ready):
    (ready.home / "no-ensurepip").touch()
    answer = ready.dev("sim")
    assert answer.returncode == 1
    assert "python3.11-venv" in answer.stderr


def test_a_user_who_may_not_install_sees_the_exact_command(ready):
    (ready.home / "no-ensurepip").touch()
    ready.has("apt-get", APT_GET)
    ready.has("id", "#!/bin/sh\necho 1000\n")
    answer = ready.dev("sim")
    assert answer.returncode == 1
    assert "    sudo apt-get update && sudo apt-get install -y python3.11-venv\n" in answer.stderr


def test_root_installs_what_is_missing_and_goes_on(ready):
    (ready.home / "no-ensurepip").touch()
    ready.has("apt-get", APT_GET)
    ready.has("apt-cache", "#!/bin/sh\necho available\n")
    ready.has("id", "#!/bin/sh\necho 0\n")
    answer = ready.dev("sim")
    assert "installed python3.11-venv" in answer.stderr
    assert "ran: -m simulation" in answer.stdout


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2", "25-ea"])
def test_java_17_or_newer_will_do(ready, version):
    ready.has("java", java(version))
    ran = ready.dev("test", "-x").stdout
    assert ran.startswith("ran: -m pytest")
    assert ran.splitlines()[0].endswith(" -x")


@pytest.mark.parametrize("command", ["test", "demo"])
@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.22"])
def test_an_old_java_home_is_refused_where_java_is_needed(ready, command, version):
    ready.has("old/bin/java", java(version))
    answer = ready.dev(command, JAVA_HOME=str(ready.home / "bin" / "old"))
    assert answer.returncode == 1
    assert "JAVA_HOME is" in answer.stderr


def test_the_simulator_needs_no_java(ready):
    assert ready.dev("sim", JAVA_HOME="/nowhere").returncode == 0


def test_a_bare_root_is_refused_to_who_may_not_make_one(machine):
    machine.has("mmdebstrap", "#!/bin/sh\n")
    machine.has("id", "#!/bin/sh\necho 1000\n")
    answer = machine.dev("bare", "test")
    assert answer.returncode == 1
    assert "needs root: sudo --shell, then ./dev bare test\n" in answer.stderr


def test_spark_starts_from_an_archive_of_its_classes_where_there_is_one(ready):
    assert "SharedArchiveFile" not in ready.dev("test").stdout
    (venv,) = (path.parent for path in ready.home.rglob("ready"))
    (venv / "spark.jsa").touch()

    assert f"-XX:SharedArchiveFile='{venv}/spark.jsa'" in ready.dev("test").stdout
