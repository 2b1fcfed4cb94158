"""The command `exeunt` in virtual time: half a minute of the demo takes a second. Run it as a program."""

import functools

import trio
import trio.testing

from exeunt.cli import main

if __name__ == "__main__":
    virtual = functools.partial(trio.run, clock=trio.testing.MockClock(autojump_threshold=0))
    setattr(trio, "run", virtual)  # noqa: B010 - no type checker accepts it as the function that it is
    main()
