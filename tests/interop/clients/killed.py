"""Four sessions, each in another state when their server is killed; then a client that takes them up again.

Argument: the model's base URL. Reads the address of a server, says `ready` when all are in their states and what has
happened is kept, reads the address of the next server, and prints what became of each session as JSON. Runs with the
packages of the official client, not with those of this project.
"""

# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
import json
import sys

from copilot import CopilotClient, RuntimeConnection
from copilot.rpc import (
    HandlePendingToolCallRequest,
    HistoryClearContextRequest,
    PermissionDecisionApproveOnce,
    PermissionDecisionRequest,
)
from copilot.tools import Tool, ToolResult

LONGEST = 60
"""Seconds that anything may take on a busy machine."""


DONE = "it is done"
"""What each tool returns."""


async def never():
    await asyncio.Event().wait()


async def at_once():
    return None


class Life:
    """What there is of one session while one client has it."""

    def __init__(self, name, base_url, ready):
        """*ready* is what tools and decisions wait for."""
        self.name = name
        self.ready = ready
        self.session = None
        self.reached = asyncio.Event()
        self.idle = asyncio.Event()
        self.called = []
        self.config = {
            "model": "fake",
            "provider": {"type": "openai", "base_url": f"{base_url}/{name}/v1", "api_key": "key"},
            "system_message": {"mode": "replace", "content": "You are terse."},
            "tools": [
                self.tool("look_up", skip_permission=True),
                self.tool("deploy"),
                self.tool("clear_context", skip_permission=True, is_terminal=True),
            ],
            "on_permission_request": self.decide,
            "on_event": lambda event: event.type.value == "session.idle" and self.idle.set(),
        }

    def tool(self, name, **more):
        async def handler(invocation):
            self.called.append(name)
            if name == "clear_context":
                await self.session.rpc.history.clear_context(HistoryClearContextRequest(prompt="begin anew"))
            self.reached.set()
            await self.ready()
            return ToolResult(text_result_for_llm=DONE)

        return Tool(name=name, description=name, handler=handler, **more)

    async def decide(self, request, invocation):
        self.reached.set()
        await self.ready()
        return PermissionDecisionApproveOnce()


async def connected():
    address = (await asyncio.to_thread(sys.stdin.readline)).strip()
    client = CopilotClient(connection=RuntimeConnection.for_uri(address))
    await client.start()
    return client


async def before_the_kill(client, base_url):
    # The last one waits for its model. That its message is acknowledged says that all that came before is kept.
    for name in ("tool", "permission", "clear", "model"):
        life = Life(name, base_url, never)
        life.session = await client.create_session(session_id=name, **life.config)
        await life.session.send("go")
        if name != "model":
            await asyncio.wait_for(life.reached.wait(), LONGEST)


async def answered(life):
    """Answer, twice, what the session has asked before the kill, as its log shows it."""
    rpc = life.session.rpc
    asked = {event.type.value: event.data for event in await life.session.get_events()}
    if life.name == "model":
        return []
    if life.name == "permission":
        request_id, yes = asked["permission.requested"].request_id, {"kind": "approve-once"}
        request = PermissionDecisionRequest.from_dict({"requestId": request_id, "result": yes})
        answer = rpc.permissions.handle_pending_permission_request
    else:
        request_id = asked["external_tool.requested"].request_id
        request = HandlePendingToolCallRequest(request_id=request_id, result=DONE)
        answer = rpc.tools.handle_pending_tool_call
    return [(await answer(request)).success for _ in range(2)]


async def after_the_kill(client, name, base_url):
    life = Life(name, base_url, at_once)
    life.session = await client.resume_session(name, continue_pending_work=True, **life.config)
    counted = await answered(life)
    await asyncio.wait_for(life.idle.wait(), LONGEST)
    await life.session.send_and_wait("and now?", timeout=LONGEST)
    events = [event.to_dict() for event in await life.session.get_events()]
    return {
        "counted": counted,
        "called": life.called,
        "succeeded": [
            event["data"]["success"] for event in events if event["type"] == "tool.execution_complete"
        ],
        "cleared": len([event for event in events if event["type"] == "session.context_cleared"]),
    }


async def main(base_url):
    first = await connected()
    await before_the_kill(first, base_url)
    print("ready", flush=True)
    second = await connected()
    names = ("model", "tool", "permission", "clear")
    became = {name: await after_the_kill(second, name, base_url) for name in names}
    await second.stop()
    await first.force_stop()
    print(json.dumps(became), flush=True)


asyncio.run(main(*sys.argv[1:]))
