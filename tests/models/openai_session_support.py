"""A session whose model is an HTTP double behind a door, and a strict look at what it sends."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs
import trio

from exeunt import Reply, RetryPolicy, Session, Tool, approve_all, tool
from exeunt.actors.events import Event
from exeunt.host import SessionHost
from exeunt.models import model_from_provider
from exeunt.models.door import HttpModel
from exeunt.testing.checked_host import checked_host
from exeunt.testing.http_double import HttpDouble
from tests.models.dirty_api import CHAT, Api

E = TypeVar("E", bound=Event)

QUICK = RetryPolicy(attempts=2, first_delay=0.001, longest_delay=0.001, jitter=0)
"""These tests run in real time, since their sockets are real."""

KEY = "sk-very-secret"


@attrs.frozen
class Watched:
    """A session and everything that happened in it."""

    session: Session
    host: SessionHost
    model: HttpModel
    events: list[Event]
    """All events since the session was made, those that are not logged too."""
    options: dict[str, Any]
    """What the session was made with, to make more like it."""

    def seen(self, kind: type[E]) -> list[E]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    async def ask(self, prompt: str = "Go.") -> Reply:
        """Send and wait, for not longer than a test may take."""
        return await self.session.send_and_wait(prompt, timeout=20)


def provider(double: HttpDouble, **settings: Any) -> dict[str, Any]:
    """The double, as plain configuration."""
    return {
        "type": "openai",
        "base_url": f"http://127.0.0.1:{double.port}/v1",
        "api_key": KEY,
        "trust_env": False,
        **settings,
    }


@asynccontextmanager
async def talking_to(double: HttpDouble, *, api: Api = CHAT, **options: Any) -> AsyncGenerator[Watched]:
    """Open a session on the double in a checked host.

    What no reply is prepared for is answered with `RECOVERED`. At the end every request must have been one that
    a strict server takes, and no connection may be in use.
    """
    double.otherwise = api.recovered
    where = provider(double, **api.provider)
    model = model_from_provider("m", where)
    assert isinstance(model, HttpModel)
    made_with: dict[str, Any] = {
        "model": "m",
        "provider": where,
        "retries": QUICK,
        "on_permission_request": approve_all,
        **options,
    }
    async with checked_host() as host:
        session = await host.create_session(**made_with)
        events: list[Event] = []
        session.on(events.append)
        yield Watched(session, host, model, events, made_with)
        statistics = model.statistics()
        assert (statistics.in_flight, statistics.pool.in_use, statistics.pool.waiting) == (0, 0, 0)
    await model.aclose()
    for request in double.requests:
        assert api.refusals(request.body) == []


@attrs.frozen
class Toolbox:
    """The tools of the dirty answers. They write down how they are called."""

    calls: list[tuple[str, dict[str, Any]]] = attrs.field(factory=list[tuple[str, dict[str, Any]]])

    def tools(self) -> Sequence[Tool[..., Any]]:
        """The tools, made anew."""
        note = self._note

        @tool
        async def get_weather(city: str) -> str:
            """Weather of a city."""
            return await note("get_weather", city=city)

        @tool
        async def read_file(path: str) -> str:
            """Read a file."""
            return await note("read_file", path=path)

        @tool
        async def write_file(path: str, content: str, append: bool = False) -> str:
            """Write a file."""
            return await note("write_file", path=path, content=content, append=append)

        @tool
        async def list_files(page: int = 1) -> str:
            """List files."""
            return await note("list_files", page=page)

        @tool
        async def set_level(value: float) -> str:
            """Set a level."""
            return await note("set_level", value=value)

        @tool
        async def set_todos(items: list[str]) -> str:
            """Set the list of things to do."""
            return await note("set_todos", items=items)

        @tool
        async def get_row(id: int) -> str:
            """Get a row of a table."""
            return await note("get_row", id=id)

        return (get_weather, read_file, write_file, list_files, set_level, set_todos, get_row)

    async def _note(self, name: str, **arguments: Any) -> str:
        self.calls.append((name, arguments))
        number = len(self.calls)
        await trio.lowlevel.checkpoint()
        return f"result {number} of {name}"


DEFAULTS: dict[str, dict[str, Any]] = {"write_file": {"append": False}, "list_files": {"page": 1}}
"""What a tool gets where the model gives nothing."""
