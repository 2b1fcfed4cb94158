"""A reviewer whose approvals arrive by HTTP a minute later.

The session leaves open what it asks. A person sees the open requests at `GET /requests`, from wherever, and answers
with `POST /requests/SESSION/REQUEST`.

    python examples/reviewer.py                 a minute in no time: time is virtual, and connections are in memory
    python examples/reviewer.py --port 8080     the same at http://127.0.0.1:8080/requests, in real time

HTTP is spoken by h11, in some forty lines, so that nothing else needs to be installed. In a service of yours the two
routes are two functions of your web framework.
"""

import argparse
import json
from functools import partial
from typing import Any

import h11
import msgspec
import trio
from trio.testing import memory_stream_pair

from exeunt import (
    InvalidAnswer,
    RequestNotPending,
    SessionHost,
    SessionNotFound,
    ask_user_tool,
    leave_pending,
    open_host,
    tool,
)
from exeunt.testing import ScriptedModel, call, run_virtual, say


@tool(skip_permission=True)
async def read_change(number: int) -> str:
    """Read a change."""
    return f"Change {number}: get is called fetch_record."


@tool(approval_timeout=3 * 86_400)
async def merge(number: int) -> str:
    """Merge a change. Somebody must approve it, within three days."""
    return f"Change {number} is merged."


MODEL = ScriptedModel(
    [
        call("read_change", number=7),
        call("ask_user", question="Squash the commits of change 7?", choices=["yes", "no"]),
        call("merge", number=7),
        say("Change 7 is merged, its commits squashed."),
    ]
)


# --- Two routes -----------------------------------------------------------------------------------------------


async def route(host: SessionHost, method: str, path: str, body: bytes) -> tuple[int, Any]:
    """Answer a request with a status and a value for JSON."""
    match method, path.strip("/").split("/"):
        case "GET", ["requests"]:
            return 200, host.pending_requests()
        case "POST", ["requests", session_id, request_id]:
            try:
                await host.get_session(session_id).answer(request_id, json.loads(body)["answer"])
            except (SessionNotFound, RequestNotPending) as error:
                return 409, {"error": str(error)}
            except (InvalidAnswer, ValueError, KeyError, TypeError) as error:
                return 422, {"error": str(error)}
            return 200, {"answered": request_id}
        case _:
            return 404, {"error": f"there is nothing at {method} {path}"}


async def serve(host: SessionHost, stream: trio.abc.Stream) -> None:
    """Speak HTTP/1.1 on one connection, until the other side closes it."""
    async with stream:
        connection = h11.Connection(h11.SERVER)
        try:
            while True:
                method, path, body = "", "", b""
                while not isinstance(event := await next_event(connection, stream), h11.EndOfMessage):
                    if isinstance(event, h11.Request):
                        method, path = event.method.decode(), event.target.decode()
                    elif isinstance(event, h11.Data):
                        body += event.data
                    else:
                        return
                status, value = await route(host, method, path, body)
                await send(
                    connection, stream, h11.Response(status_code=status, headers=json_headers(value)), value
                )
                if connection.our_state is h11.MUST_CLOSE:
                    return
                connection.start_next_cycle()
        except (h11.RemoteProtocolError, trio.BrokenResourceError):
            return  # It spoke no HTTP, or is gone.


def json_headers(value: Any) -> list[tuple[str, str]]:
    """The headers of a message whose body is *value*."""
    return [("Content-Type", "application/json"), ("Content-Length", str(len(msgspec.json.encode(value))))]


async def send(connection: h11.Connection, stream: trio.abc.Stream, head: Any, value: Any) -> None:
    """Send a message whose body is *value*."""
    events = (head, h11.Data(data=msgspec.json.encode(value)), h11.EndOfMessage())
    await stream.send_all(b"".join(connection.send(event) or b"" for event in events))


async def next_event(connection: h11.Connection, stream: trio.abc.Stream) -> Any:
    """Return the next part of a message."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(bytes(await stream.receive_some()))
    return event


# --- A person, a minute later ---------------------------------------------------------------------------------


async def ask(stream: trio.abc.Stream, method: str, path: str, value: Any = None) -> tuple[int, Any]:
    """Make one HTTP request on a connection of its own; return status and value."""
    connection = h11.Connection(h11.CLIENT)
    headers = [("Host", "127.0.0.1"), ("Connection", "close"), *json_headers(value)]
    await send(connection, stream, h11.Request(method=method, target=path, headers=headers), value)
    status, body = 0, b""
    while not isinstance(event := await next_event(connection, stream), h11.EndOfMessage):
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
    return status, json.loads(body)


async def person(host: SessionHost, nursery: trio.Nursery) -> None:
    """Look a minute later, and answer."""

    async def exchange(method: str, path: str, value: Any = None) -> tuple[int, Any]:
        near, far = memory_stream_pair()
        nursery.start_soon(serve, host, far)
        async with near:
            return await ask(near, method, path, value)

    for answer in ("yes", "approved"):
        await trio.sleep(60)
        _, [request] = await exchange("GET", "/requests")
        asked = request["request"].get("question") or f"May {request['tool_name']} run?"
        print(f"{trio.current_time():.0f} s: {asked}")
        path = f"/requests/{request['session_id']}/{request['request_id']}"
        status, _ = await exchange("POST", path, {"answer": answer})
        print(f"{trio.current_time():.0f} s: {answer}: {status}")
        status, _ = await exchange("POST", path, {"answer": answer})
        print(f"{trio.current_time():.0f} s: once more: {status}")


async def main(port: int | None = None) -> None:
    async with open_host() as host:
        session = await host.create_session(
            model=MODEL,
            tools=[read_change, merge, ask_user_tool()],
            on_permission_request=leave_pending,
            on_user_input_request=leave_pending,
        )
        async with trio.open_nursery() as nursery:
            if port is None:
                nursery.start_soon(person, host, nursery)
            else:

                async def serve_tcp(stream: trio.SocketStream) -> None:
                    await serve(host, stream)

                await nursery.start(partial(trio.serve_tcp, serve_tcp, port, host="127.0.0.1"))
                print(f"open requests: http://127.0.0.1:{port}/requests")
            reply = await session.send_and_wait("Review change 7.", timeout=None)
            if port is not None:
                nursery.cancel_scope.cancel()
        print(reply.content)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    chosen = parser.parse_args().port
    if chosen is None:
        run_virtual(main)
    else:
        trio.run(main, chosen)
