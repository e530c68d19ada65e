"""The core's time never runs backwards, even if the wall clock is set."""

from weir.core.lifecycle import TimePassed
from weir.driver.loop_clock import LoopClock
from weir.wire.clocks import ProcessClock

HOUR = 3_600_000


class Machine:
    """A machine whose wall clock is set."""

    def __init__(self):
        self.uptime = 70
        self.skew = 0
        self.time = LoopClock(ProcessClock(lambda: self.uptime, lambda: self.uptime + self.skew))

    def passed(self):
        return self.time.passed(lambda: 0.25)


def test_the_core_hears_of_each_moment_once():
    """C6."""
    machine = Machine()

    assert machine.passed() == TimePassed(70, 0.25)
    assert machine.passed() is None
    machine.uptime += 1
    assert machine.passed() == TimePassed(71, 0.25)


def test_time_goes_on_when_the_clock_is_set_back():
    """C6 R2: a driver that waited for the old time to come again would stand still till then."""
    machine = Machine()
    machine.passed()
    machine.skew = -HOUR
    machine.uptime += 30

    assert machine.passed() == TimePassed(100, 0.25, ahead=-HOUR)
    assert machine.time.left_ms(110) == 10


def test_nothing_is_due_earlier_when_the_clock_is_set_forward():
    """C6: no checkpoint expires because a clock was set."""
    machine = Machine()
    machine.passed()
    machine.skew = HOUR

    assert machine.passed() is None
    assert machine.time.left_ms(100) == 30
    assert machine.time.left_ms(60) == 0
