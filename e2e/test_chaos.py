"""One job, and many faults in random order.

``./dev e2e --chaos 50`` runs only this test. The order is drawn from the seed that the run prints;
every fault is injected once before any is repeated. In the end the whole output in the bucket is
verified.
"""

from collections import defaultdict
from statistics import median

import pytest

from fault_injection import KILLS, TWO_DRIVERS
from random_seed import dice, show
from recovery_check import fault_name, recovery_time

pytestmark = pytest.mark.chaos


def drawn(number):
    """So many mishaps: all of them in some order, again and again."""
    throw, order = dice("chaos"), []
    while len(order) < number:
        order += throw.sample((*KILLS, *TWO_DRIVERS), k=len((*KILLS, *TWO_DRIVERS)))
    return order[:number]


def test_a_job_survives_whatever_comes_in_any_order(scenario, progress, pytestconfig):
    """R1 R5 C17 K3 K4."""
    faults = drawn(pytestconfig.getoption("--chaos"))
    times = defaultdict(list)
    for number, fault in enumerate(faults, start=1):
        progress(f"{number} of {len(faults)}: {fault_name(fault)}")
        times[fault_name(fault)].append(recovery_time(scenario, fault))

    for what, took in sorted(times.items()):
        show(f"{what}: {len(took)} times, {spread(took)} to the next committed result")
    verdict = scenario.job.verdict()
    show(f"exactly-once: {verdict}" if verdict.is_exactly_once else f"broken: {verdict}")
    assert verdict.is_exactly_once, verdict


def spread(took):
    return f"{min(took):.1f} / {median(took):.1f} / {max(took):.1f} s (least, median, most)"
