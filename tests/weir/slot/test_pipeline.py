"""The steps of a stage: one behind the other, drained for each batch."""

from fake_connectors import Tenfold, numbers_of, rows
from weir.slot.pipeline import Pipeline


class OddOnly:
    """Keeps odd numbers, as a filter does: possibly nothing."""

    label = "odd"

    def __call__(self, batch):
        return (rows(*(n for n in numbers_of([batch]) if n % 2)),)


class Never:
    """A step behind one that let nothing through."""

    label = "never"

    def __call__(self, batch):
        raise AssertionError(f"{batch} should not come here")


def through(batch, *steps):
    return [numbers_of([out]) for out in Pipeline(steps).through(batch)]


def test_without_steps_a_batch_passes_as_it_is():
    """D3."""
    assert through(rows(1, 2)) == [[1, 2]]


def test_steps_work_one_behind_the_other():
    """D2."""
    assert through(rows(1, 2, 3), OddOnly(), Tenfold()) == [[10], [30]]


def test_a_step_that_gives_several_batches_is_drained():
    """A12: no row is ever only inside a user's generator."""
    assert through(rows(1, 2), Tenfold(), Tenfold()) == [[100], [200]]


def test_batches_without_rows_go_no_further():
    """No batch is ever empty."""
    assert through(rows(2, 4), OddOnly(), Never()) == []
