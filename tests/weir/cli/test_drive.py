"""What `weir drive` does with a script: exit codes, and the report that it leaves."""

import os
import signal
import subprocess
import sys

import pytest

from failing_s3 import failing_s3
from managed_scripts import ENDS_AS
from wait_until import until
from weir.api.report import JobPhase, JobReport

REJECTS = "from weir.errors import JobRejected\nraise JobRejected('no', 'why', 'yes')\n"
STARTS = ENDS_AS.format(phase="FINISHED")


@pytest.fixture
def log(tmp_path):
    return tmp_path / "termination-log"


@pytest.fixture
def driver(tmp_path, log):
    """Starts a driver with a script, or with the name of one."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    assigned = {"WEIR_ATTEMPT": "3", "WEIR_TERMINATION_LOG": str(log)}

    def start(text, *arguments, main="", **more):
        script = tmp_path / "job.py"
        script.write_text(text)
        return subprocess.Popen(
            [sys.executable, "-m", "weir.cli", "drive", main or str(script), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**variables, **assigned, **more, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    return start


def ended(process):
    """Its exit code and what it said."""
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def report(log):
    return JobReport.model_validate_json(log.read_bytes())


@pytest.mark.parametrize(
    ("phase", "code"), [("FINISHED", 0), ("STOPPED", 0), ("CANCELED", 0), ("FAILED", 2)]
)
def test_a_script_that_does_not_wait_for_its_job_is_waited_for(driver, log, phase, code):
    """K2 K7: and the exit code says how the job ended."""
    status, _, errors = ended(driver(ENDS_AS.format(phase=phase)))

    assert (status, report(log).phase.name) == (code, phase), errors
    assert (report(log).attempt, report(log).completed) == (3, 5)


def test_a_script_has_its_own_arguments_whatever_they_look_like(driver):
    """D5: also those that a command of ours would take for its own."""
    text = f"import sys\nprint(sys.argv[1:], __name__)\n{STARTS}"
    status, output, _ = ended(driver(text, "--help", "-x", "--", "a"))

    assert (status, output) == (0, "['--help', '-x', '--', 'a'] __main__\n")


def test_a_refused_job_is_given_up_with_its_reason(driver, log):
    """K7 U3: a person must change something first."""
    status, _, errors = ended(driver(REJECTS))
    left = report(log)

    assert (status, left.phase, left.is_rejected) == (2, JobPhase.FAILED, True)
    assert (left.attempt, left.why) == (3, "no: why. Remedy: yes.")
    assert "Traceback" not in errors


def test_a_script_that_fails_may_be_tried_again(driver, log):
    """K7: a retry may help."""
    status, _, errors = ended(driver("1 / 0"))
    left = report(log)

    assert (status, left.phase, left.is_rejected) == (1, JobPhase.CREATED, False)
    assert left.why == "the script failed, ZeroDivisionError: division by zero"
    assert "Traceback" in errors


@pytest.mark.parametrize(("ending", "code"), [("0", 0), ("7", 1)])
def test_a_script_that_exits_is_judged_by_its_job_and_its_own_word(driver, ending, code):
    """K7: zero is as good as the end of the file."""
    assert ended(driver(f"{STARTS}raise SystemExit({ending})\n"))[0] == code


def test_a_job_that_runs_when_its_script_fails_ends_with_the_process(driver, log):
    """K7: it goes on from its checkpoint when it is tried again."""
    status, _, _ = ended(driver(f"{STARTS}1 / 0\n"))

    assert (status, report(log).phase, report(log).completed) == (1, JobPhase.RUNNING, 5)
    assert "ZeroDivisionError" in report(log).why


def test_a_script_that_starts_no_job_is_refused(driver, log):
    """U3: to try it again would be of no use."""
    status, _, _ = ended(driver("answer = 42"))

    assert (status, report(log).is_rejected) == (2, True)
    assert "job.py has ended and started no job: " in report(log).why


def test_a_script_that_is_not_there_is_named(driver, log):
    """U3: path, reason, remedy."""
    status, _, _ = ended(driver("", main="nowhere/job.py"))

    assert status == 2
    assert "no script nowhere/job.py" in report(log).why


def test_a_script_is_fetched_from_wherever_it_lies(driver, tmp_path):
    """K2: with the name that it has there."""
    text = f"print(__file__.rpartition('/')[2])\n{STARTS}"
    status, output, _ = ended(driver(text, main=f"file://{tmp_path}/job.py"))

    assert (status, output) == (0, "job.py\n")


def test_a_script_is_waited_for_while_its_storage_is_away(driver):
    """K7 R1: time may heal it, and another attempt would only ask the same."""
    with failing_s3() as bucket:
        bucket.objects["job.py"] = STARTS.encode()
        bucket.refuse(503, "SlowDown", times=3)
        status, _, errors = ended(driver("", main=bucket.url("job.py"), **bucket.environment()))

    assert status == 0, errors


def test_a_driver_that_waits_for_its_script_ends_on_sigterm(driver, log):
    """C12 K7: and says in its log what it waited for."""
    nowhere = "http://127.0.0.1:9/job.py"
    process = driver("", main=nowhere)
    said = next(line for line in process.stderr if "is retried" in line)
    process.send_signal(signal.SIGTERM)
    status, _, _ = ended(process)

    assert nowhere in said
    assert (status, report(log).phase, report(log).is_rejected) == (1, JobPhase.CREATED, False)


def test_an_invalid_environment_variable_of_the_driver_is_refused(driver, log):
    """U3: by the code that needs it, and the report is written all the same."""
    imports = "import os\nfrom weir.driver.driver_environment import driver_environment_of\n"
    text = f"{imports}driver_environment_of(os.environ)\n"
    status, _, _ = ended(driver(text, WEIR_ATTEMPT="three"))

    assert (status, report(log).attempt, report(log).is_rejected) == (2, 0, True)


def test_a_driver_that_ends_on_sigterm_before_it_has_a_job_reports_why(driver, log, tmp_path):
    """C12 K7: a fault, not the end of the job."""
    ready = tmp_path / "ready"
    text = f"import threading\nopen({str(ready)!r}, 'w').close()\nthreading.Event().wait()\n"
    process = driver(text)
    until("the script runs", ready.exists, lambda: str(process.poll()))
    process.send_signal(signal.SIGTERM)
    status, _, _ = ended(process)

    assert (status, report(log).phase) == (1, JobPhase.CREATED)
    assert "received SIGTERM" in report(log).why


def test_without_a_place_for_it_nothing_is_left(driver, log):
    """K7: the exit code is all."""
    assert ended(driver(STARTS, WEIR_TERMINATION_LOG=""))[0] == 0
    assert not log.exists()
