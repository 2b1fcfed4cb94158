"""The sample of the documentation: a terminal tool that clears the context. Prints what it saw as JSON.

Arguments: the way to the runtime (uri, stdio or tcp), the runtime (an address or a program), the model's base URL.
Runs with the packages of the official client, not with those of this project.
"""

# mypy: ignore-errors
# pyright: basic, reportMissingImports=false

import asyncio
import json
import sys

from copilot import CopilotClient, RuntimeConnection, define_tool
from copilot.rpc import HistoryClearContextRequest
from copilot.session import PermissionHandler
from pydantic import BaseModel, Field


class ClearContext(BaseModel):
    prompt: str = Field(description="The first message of the new context.")


async def main(way: str, runtime: str, base_url: str) -> None:
    connection = {
        "uri": lambda: RuntimeConnection.for_uri(runtime),
        "stdio": lambda: RuntimeConnection.for_stdio(path=runtime),
        "tcp": lambda: RuntimeConnection.for_tcp(path=runtime),
    }[way]()
    client = CopilotClient(connection=connection)
    await client.start()
    sessions = []

    @define_tool(
        name="clear_context",
        description="Clear the conversation and start a fresh context window.",
        is_terminal=True,
        defer="never",
    )
    async def clear_context(params: ClearContext) -> str:
        cleared = await sessions[0].rpc.history.clear_context(
            HistoryClearContextRequest(prompt=params.prompt)
        )
        return f"Cleared {cleared.messages_cleared} messages."

    session = await client.create_session(
        model="fake",
        provider={"type": "openai", "base_url": base_url, "api_key": "key"},
        tools=[clear_context],
        system_message={"mode": "replace", "content": "You are terse."},
        on_permission_request=PermissionHandler.approve_all,
    )
    sessions.append(session)
    kinds = []
    session.on(lambda event: kinds.append(event.type.value))
    replies = [
        (await session.send_and_wait(prompt, timeout=30)).data.content
        for prompt in ("hello", "please start over")
    ]
    kept = len(await session.get_events())
    await session.disconnect()
    await client.stop()
    print(json.dumps({"replies": replies, "kinds": kinds, "kept": kept}))


asyncio.run(main(*sys.argv[1:]))
