"""The command `exeunt` in virtual time: half a minute of the demo takes a second. Run it as a program."""

import functools

import trio
import trio.testing

from exeunt.cli import main

if __name__ == "__main__":
    trio.run = functools.partial(trio.run, clock=trio.testing.MockClock(autojump_threshold=0))
    main()
