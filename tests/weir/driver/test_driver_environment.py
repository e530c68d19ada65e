"""What a driver reads from environment variables, and what it refuses."""

import pytest

from weir.core.ids import NO_CHECKPOINT
from weir.driver.driver_environment import DriverEnvironment, driver_environment_of, termination_log
from weir.errors import JobRejected


def test_an_empty_environment_leaves_everything_to_the_script():
    """C15: every submission is then a new one."""
    assert driver_environment_of({}) == DriverEnvironment(deployment="")


def test_an_operator_says_which_job_and_which_attempt_it_is():
    """K2 C12: an attempt means that an operator manages the job."""
    environment = driver_environment_of(
        {"WEIR_JOB": "orders", "WEIR_ATTEMPT": "3", "WEIR_DEPLOYMENT": "orders-2"}
    )

    assert environment == DriverEnvironment(
        "orders-2", job="orders", attempt=3, takes_over=True, reruns=True
    )
    assert environment.is_managed


def test_attempt_zero_is_an_attempt():
    """C12: only a missing number means that no operator manages the job."""
    assert driver_environment_of({"WEIR_ATTEMPT": "0"}).is_managed


def test_an_operator_says_what_to_start_from():
    """K4: the lowest acceptable checkpoint, or no state."""
    assert driver_environment_of({"WEIR_LOWEST_CHECKPOINT": "12"}).lowest_checkpoint == 12
    assert driver_environment_of({}).lowest_checkpoint == NO_CHECKPOINT
    assert driver_environment_of({"WEIR_FRESH": "true"}).is_fresh
    assert not driver_environment_of({"WEIR_FRESH": "false"}).is_fresh


@pytest.mark.parametrize(
    "variables",
    [
        {"WEIR_ATTEMPT": "three"},
        {"WEIR_ATTEMPT": "-1"},
        {"WEIR_ATTEMPT": "9" * 40},
        {"WEIR_LOWEST_CHECKPOINT": "1.5"},
        {"WEIR_FRESH": "yes"},
        {"WEIR_JOB": "../orders"},
        {"WEIR_JOB": ".."},
        {"WEIR_FRESH": "true", "WEIR_LOWEST_CHECKPOINT": "3"},
        {"WEIR_FRESH": "true", "WEIR_FROM": "s3://b/savepoint-1"},
    ],
    ids=str,
)
def test_what_means_nothing_is_refused_by_name_with_a_remedy(variables):
    """U3 K4: a driver that starts from the wrong place would lose or repeat output."""
    with pytest.raises(JobRejected, match=rf"{next(iter(variables))}.*Remedy: "):
        driver_environment_of(variables)


def test_without_a_place_for_it_no_last_report_is_left():
    """K7: a user who runs the script sees the job."""
    assert termination_log({}) is None
    assert termination_log({"WEIR_TERMINATION_LOG": "/dev/log"}).name == "log"


def test_a_driver_of_a_named_deployment_takes_over_and_reruns():
    """K2, C17: an operator need not ask for a takeover by its next driver, or for a rerun."""
    environment = driver_environment_of({"WEIR_DEPLOYMENT": "orders-2"})
    assert (environment.takes_over, environment.reruns) == (True, True)


@pytest.mark.parametrize(
    ("variable", "said"), [("WEIR_TAKE_OVER", (True, False)), ("WEIR_RERUN", (False, True))]
)
def test_a_command_line_says_what_else_a_start_may_do(variable, said):
    """C17, R6."""
    environment = driver_environment_of({variable: "true"})
    assert (environment.takes_over, environment.reruns) == said
