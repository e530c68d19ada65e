"""One job, and one mishap after the other in an order that nobody chose.

``./dev e2e --chaos 50`` runs this and nothing else. The order is drawn from the seed that the run
prints; every mishap comes before any comes again. In the end the bucket is judged as one.
"""

from collections import defaultdict
from statistics import median

import pytest

from fault_injection import KILLS, TWO_DRIVERS
from random_seed import dice, show
from recovery_check import called, went_on

pytestmark = pytest.mark.chaos


def drawn(number):
    """So many mishaps: all of them in some order, again and again."""
    throw, order = dice("chaos"), []
    while len(order) < number:
        order += throw.sample((*KILLS, *TWO_DRIVERS), k=len((*KILLS, *TWO_DRIVERS)))
    return order[:number]


def test_a_job_survives_whatever_comes_in_any_order(scene, progress, pytestconfig):
    """R1 R5 C17 K3 K4."""
    mishaps = drawn(pytestconfig.getoption("--chaos"))
    times = defaultdict(list)
    for number, mishap in enumerate(mishaps, start=1):
        progress(f"{number} of {len(mishaps)}: {called(mishap)}")
        times[called(mishap)].append(went_on(scene, mishap))

    for what, took in sorted(times.items()):
        show(f"{what}: {len(took)} times, {spread(took)} to the next committed result")
    verdict = scene.job.verdict()
    show(f"exactly-once: {verdict}" if verdict.is_exactly_once else f"broken: {verdict}")
    assert verdict.is_exactly_once, verdict


def spread(took):
    return f"{min(took):.1f} / {median(took):.1f} / {max(took):.1f} s (least, median, most)"
