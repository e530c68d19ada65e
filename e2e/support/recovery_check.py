"""Whether a job recovered from a fault: it commits again, and its whole output is right.

The time to the next committed result is shown and returned; no test asserts it.
"""

import time

from fault_injection import TO_THE_NODE, Fault, Scenario
from random_seed import show


def survived(scenario: Scenario, fault: Fault) -> None:
    """The job went on, and its output is exact."""
    took = recovery_time(scenario, fault)
    verdict = scenario.job.verdict()
    show(f"{fault_name(fault)}: next committed result after {took:.1f} s; {verdict}")
    assert verdict.is_exactly_once, f"{fault_name(fault)}: {verdict}"


def recovery_time(scenario: Scenario, fault: Fault) -> float:
    """Seconds from the fault to the next committed result; the job commits after its end, too."""
    if fault in TO_THE_NODE:
        scenario.move_driver()
    began = time.monotonic()
    with fault(scenario):
        scenario.job.until_committed()
        took = time.monotonic() - began
    scenario.job.until_committed()
    return took


def fault_name(fault: Fault) -> str:
    """Its name, as a person says it."""
    return fault.__name__.replace("_", " ")
