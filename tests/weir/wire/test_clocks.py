"""Intervals are measured by a count that only grows; the wall clock is for stamps."""

from weir.wire.clocks import ProcessClock

HOUR = 3_600_000


class Machine:
    """A machine whose wall clock is set."""

    def __init__(self):
        self.uptime = 70
        self.skew = 1_000_000

    def clock(self):
        return ProcessClock(lambda: self.uptime, lambda: self.uptime + self.skew)


def test_the_count_begins_at_what_the_wall_clock_shows():
    """C6: so that both are the same until the clock is set."""
    clock = Machine().clock()

    assert (clock.now(), clock.wall(), clock.ahead()) == (1_000_070, 1_000_070, 0)


def test_a_clock_that_is_set_changes_no_interval():
    """C6 R2: neither back nor forward."""
    machine = Machine()
    clock = machine.clock()
    for jump in (-HOUR, 2 * HOUR):
        before = clock.now()
        machine.skew += jump
        machine.uptime += 5

        assert clock.now() == before + 5


def test_stamps_follow_the_wall_clock():
    """C21: people compare them with their own clocks."""
    machine = Machine()
    clock = machine.clock()
    machine.skew -= HOUR

    assert clock.ahead() == -HOUR
    assert clock.now() + clock.ahead() == clock.wall()


def test_the_clocks_of_this_machine_are_the_default():
    """C6."""
    clock = ProcessClock()
    first = clock.now()

    assert clock.now() >= first
    assert clock.wall() > 0
