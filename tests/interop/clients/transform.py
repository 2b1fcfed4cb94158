"""A session whose client rewrites sections of the system message, which another client then does in another way.

Arguments: the runtime, the model's base URL. Prints, as JSON, what the functions of each client were given. Runs with
the packages of the official client, not with those of this project.
"""

# mypy: ignore-errors
# pyright: basic, reportMissingImports=false

import asyncio
import json
import sys

from copilot import CopilotClient, RuntimeConnection
from copilot.session import PermissionHandler

LONGEST = 60
"""Seconds that a turn may take on a busy machine."""


def raises(content):
    raise ValueError("no text comes of this")


def configured(base_url, mark, given):
    def at_once(content):
        given.append(["identity", content])
        return f"{mark}{content}{mark}"

    async def later(content):
        await asyncio.sleep(0)
        given.append(["tone", content])
        return f"{mark}tone{mark}"

    sections = {
        "identity": {"action": at_once},
        "tone": {"action": later},
        "custom_instructions": {"action": raises},
        "safety": {"action": "replace", "content": "SAFE"},
    }
    return {
        "model": "fake",
        "provider": {"type": "openai", "base_url": base_url, "api_key": "key"},
        "system_message": {"mode": "customize", "sections": sections, "content": "MORE"},
        "organization_custom_instructions": "RULES",
        "on_permission_request": PermissionHandler.approve_all,
    }


async def main(runtime, base_url):
    client = CopilotClient(connection=RuntimeConnection.for_stdio(path=runtime))
    await client.start()
    first, second = [], []
    session = await client.create_session(**configured(base_url, "*", first))
    for prompt in ("one", "two"):
        await session.send_and_wait(prompt, timeout=LONGEST)
    await session.disconnect()
    again = await client.resume_session(session.session_id, **configured(base_url, "+", second))
    await again.send_and_wait("three", timeout=LONGEST)
    await client.stop()
    print(json.dumps([first, second]))


asyncio.run(main(*sys.argv[1:]))
