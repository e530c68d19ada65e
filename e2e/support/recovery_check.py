"""Whether a job survived a mishap: it commits again, and all that it ever committed is right.

How long the next committed result took is shown and returned; no test asserts it.
"""

import time

from fault_injection import TO_THE_NODE, Mishap, Scene
from random_seed import show


def survived(scene: Scene, mishap: Mishap) -> None:
    """The job went on, and its output is exact."""
    took = went_on(scene, mishap)
    verdict = scene.job.verdict()
    show(f"{called(mishap)}: next committed result after {took:.1f} s; {verdict}")
    assert verdict.is_exactly_once, f"{called(mishap)}: {verdict}"


def went_on(scene: Scene, mishap: Mishap) -> float:
    """Seconds from the mishap to the next committed result; it commits after its end, too."""
    if mishap in TO_THE_NODE:
        scene.move_driver()
    began = time.monotonic()
    with mishap(scene):
        scene.job.until_committed()
        took = time.monotonic() - began
    scene.job.until_committed()
    return took


def called(mishap: Mishap) -> str:
    """Its name, as a person says it."""
    return mishap.__name__.replace("_", " ")
