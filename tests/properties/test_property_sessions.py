"""Whole sessions under random programs: whatever happens to them, every promise holds."""

from hypothesis import given

from tests.properties.programs import PROGRAMS, Program
from tests.properties.stage import play, play_in_two_hosts


@given(PROGRAMS)
def test_whatever_happens_every_promise_holds(program: Program) -> None:
    play(program)


@given(PROGRAMS)
def test_what_a_host_leaves_behind_in_the_middle_another_takes_up(program: Program) -> None:
    play_in_two_hosts(program)
