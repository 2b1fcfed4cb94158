"""The example service with FastAPI, in this process, over real sockets."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import uvicorn

from examples import fastapi_service
from examples.fastapi_load import User
from exeunt import HostOptions
from exeunt.embed.asyncio import SessionHost, open_host
from exeunt.testing import ScriptedModel, hang

Scene = Callable[[int, SessionHost], Coroutine[Any, Any, None]]


def serve(scene: Scene) -> None:
    """Play *scene* beside the service; it gets the port, and the host behind it."""

    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            config = uvicorn.Config(fastapi_service.app, log_level="warning", lifespan="on")
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve([listening]))
            while not server.started:  # noqa: ASYNC110 - it has no event for that
                await asyncio.sleep(0)
            try:
                async with asyncio.timeout(30):
                    await scene(listening.getsockname()[1], fastapi_service.app.state.host)
            finally:
                server.should_exit = True
                await serving  # noqa: ASYNC102 - it ends by itself

    asyncio.run(main())


@asynccontextmanager
async def user_of(port: int) -> AsyncGenerator[tuple[User, str]]:
    """A user who is connected and has a session."""
    user = User(port)
    await user.connect()
    made = json.loads(b"".join([part async for part in user.request("/sessions")]))
    yield user, made["session_id"]
    await user.close()


def test_an_answer_comes_in_pieces_and_ends_with_the_turn() -> None:
    async def scene(port: int, host: SessionHost) -> None:
        async with user_of(port) as (user, session_id):
            path = f"/sessions/{session_id}/messages"
            parts = [part.decode() async for part in user.request(path, {"prompt": "Where is order 7?"})]
            names = [part.split("event: ")[1].splitlines()[0] for part in parts]
            assert names[0] == "message.accepted"
            assert names[-1] == "session.idle"
            assert "assistant.message_delta" in names
            log = [event.id for event in await host.get_session(session_id).get_events()]
            ids = [part.split("id: ")[1].splitlines()[0] for part in parts if part.startswith("id: ")]
            assert ids == log[-len(ids) :]

    serve(scene)


def test_a_user_who_goes_away_ends_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastapi_service, "MODEL", ScriptedModel([hang()]))

    async def scene(port: int, host: SessionHost) -> None:
        aborted = asyncio.Event()
        async with user_of(port) as (user, session_id):
            session = host.get_session(session_id)
            session.on(lambda event: aborted.set() if event.type == "session.idle" else None)
            answer = user.request(f"/sessions/{session_id}/messages", {"prompt": "hello"})
            assert b"message.accepted" in await anext(answer)
        await aborted.wait()
        (end,) = [event for event in await session.get_events() if event.type == "turn.end"]
        assert end.payload()["reason"] == "aborted"
        while session.statistics().subscribers > 1:  # noqa: ASYNC110 - nor has the end of a response
            await asyncio.sleep(0)

    serve(scene)


def test_a_host_without_room_is_a_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastapi_service, "MODEL", ScriptedModel([hang()]))
    small = partial(open_host, options=HostOptions(running_turns=1, waiting_turns=0))
    monkeypatch.setattr(fastapi_service, "open_host", small)

    async def scene(port: int, host: SessionHost) -> None:
        async with user_of(port) as (one, first), user_of(port) as (two, second):
            answer = one.request(f"/sessions/{first}/messages", {"prompt": "hello"})
            await anext(answer)
            with pytest.raises(RuntimeError, match="503"):
                _ = [part async for part in two.request(f"/sessions/{second}/messages", {"prompt": "hi"})]
            assert host.get_session(second).statistics().subscribers == 0
            with pytest.raises(RuntimeError, match="404"):
                _ = [part async for part in two.request("/sessions/nobody/messages", {"prompt": "hi"})]

    serve(scene)
