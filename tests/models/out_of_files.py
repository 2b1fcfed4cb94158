"""A program that may open few files: a message while it has none left, and one when it has some again.

Prints what became of each as JSON. `python out_of_files.py URL [OTHER]`: the base URL of an API; and
of another one, which has answered before and to which a connection is kept.
"""

import json
import os
import sys

import trio

from exeunt import Event, RetryPolicy, TurnFailed, open_host
from exeunt.actors.events import ModelCallFailure

FILES = 64


def take_all() -> list[int]:
    """Open files until there are none left."""
    taken: list[int] = []
    while True:
        try:
            taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            return taken


async def main(url: str, other: str) -> None:
    """Send one message without a file left, then another one whose first attempt has none."""
    failures: list[str] = []
    taken: list[int] = []
    leave_at = 0

    def look(event: Event) -> None:
        if isinstance(event, ModelCallFailure):
            failures.append(event.error_type)
            if len(failures) == leave_at:
                for file in taken:
                    os.close(file)

    async with open_host() as host:
        session = await host.create_session(
            model="m",
            provider={"type": "openai", "base_url": url},
            retries=RetryPolicy(attempts=1, first_delay=0.01),
        )
        session.on(look)
        if other:
            idle = await host.create_session(model="m", provider={"type": "openai", "base_url": other})
            await idle.send_and_wait("hello")
        taken = take_all()
        try:
            said = (await session.send_and_wait("hello")).content
        except TurnFailed as failed:
            said = str(failed.__cause__)
        leave_at = len(failures) + 1
        reply = await session.send_and_wait("hello again")
    print(json.dumps({"said": said, "failures": failures, "then": reply.content}))


if __name__ == "__main__":
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    trio.run(main, sys.argv[1], "".join(sys.argv[2:]))
