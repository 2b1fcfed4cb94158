"""A stage whose children fail on request, for tests of the tree."""

from collections.abc import Awaitable, Callable

import trio
from trio.testing import wait_all_tasks_blocked

from exeunt.supervisor import (
    Backoff,
    ChildSpec,
    RestartIntensity,
)

PLAIN = Backoff(first=1.0, maximum=8.0, factor=2.0, jitter=0.0)
OFTEN = RestartIntensity(100, 5.0)


class Stage:
    """Children that write down what they do, and fail when told to."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.kill: dict[str, trio.Event] = {}

    def actor(self, name: str) -> Callable[..., Awaitable[object]]:
        async def play(*, task_status: "trio.TaskStatus[str]") -> None:
            self.log.append(f"+{name}")
            self.kill[name] = trio.Event()
            task_status.started(name)
            try:
                await self.kill[name].wait()
            finally:
                self.log.append(f"-{name}")
            raise ValueError(name)

        return play

    def cast(self, names: str) -> list[ChildSpec]:
        return [ChildSpec(name, self.actor(name)) for name in names]

    async def fail(self, *names: str) -> None:
        """Let these children fail in the same step, and wait until nothing moves but the clock."""
        self.log.clear()
        for name in names:
            self.kill[name].set()
        await wait_all_tasks_blocked()

    def said(self) -> str:
        return " ".join(self.log)
