"""What the tests of mailbox, abort, waiting and restarts share: tools, and short ways to ask what happened."""

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from exeunt import Session, SessionHost, Tool, ToolInvocation, approve_all, tool
from exeunt.actors.events import Event
from exeunt.testing import ScriptedModel


def tool_of(name: str, run: Callable[[ToolInvocation], Awaitable[Any]], **options: Any) -> Tool[..., Any]:
    """A tool without arguments whose handler is *run*; nobody has to approve it."""
    options.setdefault("skip_permission", True)

    async def handler(invocation: ToolInvocation) -> Any:
        return await run(invocation)

    made: Tool[..., Any] = tool(name, description=f"Does what {name} says.", **options)(handler)
    return made


def plain_tool(name: str, run: Callable[[], Awaitable[Any]], **options: Any) -> Tool[..., Any]:
    """The same, for a handler that looks at nothing: the doubles of `exeunt.testing`."""

    async def ignoring(_: ToolInvocation) -> Any:
        return await run()

    return tool_of(name, ignoring, **options)


async def open_session(
    host: SessionHost, model: ScriptedModel, *tools: Tool[..., Any], **options: Any
) -> Session:
    """A session with these tools that approves everything, unless *options* say otherwise."""
    options.setdefault("on_permission_request", approve_all)
    return await host.create_session(model=model, tools=tools, **options)


def watch(session: Session) -> list[Event]:
    """A list that gets every event of the session from now on, ephemeral ones too."""
    seen: list[Event] = []
    session.on(seen.append)
    return seen


def only(events: list[Event], *names: str) -> list[Any]:
    """Those of *events* that have one of these names."""
    return [event for event in events if event.type in names]


def count(events: list[Event], name: str) -> int:
    """How many of *events* have this name."""
    return len(only(events, name))


async def logged(session: Session, *names: str) -> list[Any]:
    """The logged events that have one of these names."""
    return only(list(await session.get_events()), *names)


async def ends(session: Session) -> list[str]:
    """Why each turn ended."""
    return [str(event.reason) for event in await logged(session, "turn.end")]


async def outcomes(session: Session) -> list[tuple[str, str]]:
    """Tool and outcome of each call, in the order in which they were logged."""
    return [(e.tool_name, str(e.outcome)) for e in await logged(session, "tool.execution_complete")]


async def dropped(session: Session) -> list[tuple[str, str]]:
    """Message and cause of each message that was dropped."""
    return [(e.message_id, e.cause) for e in await logged(session, "message.dropped")]


async def reach(session: Session, phase: str) -> None:
    """Wait until the session is in *phase* and everybody waits for something. Bounded by an hour."""
    with trio.fail_after(3600):
        while session.statistics().phase != phase:  # noqa: ASYNC110 - in virtual time a look costs nothing
            await trio.sleep(0.001)
        await wait_all_tasks_blocked()


async def settled(session: Session) -> None:
    """Wait until the session has nothing to do, and no restart before it. Bounded by a day."""
    with trio.fail_after(86_400):
        await trio.lowlevel.checkpoint()
        while not _is_settled(session):  # noqa: ASYNC110 - in virtual time a look costs nothing
            await trio.sleep(0.1)


def _is_settled(session: Session) -> bool:
    now = session.statistics()
    return now.phase == "idle" and not now.queued and now.status != "restarting"


class Result:
    """What came of a coroutine that runs beside the test."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: Exception | None = None
        self.ended_at: float | None = None
        self._done = trio.Event()

    async def run(self, async_fn: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Run it and keep what it returns or raises."""
        try:
            self.value = await async_fn(*args)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        finally:
            self.ended_at = trio.current_time()
            self._done.set()

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

    async def wait(self) -> "Result":
        """Wait for its end. Bounded by a day."""
        with trio.fail_after(86_400):
            await self._done.wait()
        return self


def begin(nursery: trio.Nursery, async_fn: Callable[..., Awaitable[Any]], *args: Any) -> Result:
    """Run a coroutine function beside the test."""
    result = Result()
    nursery.start_soon(result.run, async_fn, *args)
    return result
