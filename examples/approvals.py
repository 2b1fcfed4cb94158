"""People in the loop: each dangerous call waits for an answer, and a hook sees every call before anybody is asked."""

from collections.abc import Mapping
from typing import Any

import trio

from exeunt import (
    ApproveForSession,
    HookInvocation,
    PermissionRequest,
    Reject,
    open_host,
    tool,
)
from exeunt.testing import ScriptedModel, call, say


@tool(skip_permission=True)
def look_up(name: str) -> str:
    """Find somebody's address."""
    return f"{name.lower()}@example.org"


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


@tool
def delete_everything() -> str:
    """Delete all mail."""
    return "Everything is gone."


async def ask_a_person(request: PermissionRequest, invocation: HookInvocation) -> ApproveForSession | Reject:
    """Answer for a person. A real host shows the request and waits: other sessions go on meanwhile."""
    await trio.sleep(0.1)
    if request.tool_name == "delete_everything":
        return Reject("No. Archive the old ones instead.")
    return ApproveForSession()


def only_our_own_addresses(data: Mapping[str, Any], invocation: HookInvocation) -> dict[str, str] | None:
    """Deny mail to strangers, whoever might approve it."""
    if data["tool_name"] == "send_mail" and not data["tool_args"]["to"].endswith("@example.org"):
        return {"permission_decision": "deny", "permission_decision_reason": "mail goes to example.org only"}
    return None


MODEL = ScriptedModel(
    [
        call("look_up", name="Ada"),
        [
            call("send_mail", to="ada@example.org", text="Hello."),
            call("send_mail", to="x@elsewhere.net", text="Hi."),
        ],
        call("delete_everything"),
        say("Ada has her mail; the rest was not allowed."),
    ]
)


async def main() -> None:
    async with open_host() as host:
        session = await host.create_session(
            model=MODEL,
            tools=[look_up, send_mail, delete_everything],
            on_permission_request=ask_a_person,
            on_pre_tool_use=only_our_own_addresses,
        )
        reply = await session.send_and_wait("Write to Ada, and tidy up.")
        for event in await session.get_events():
            if event.type == "tool.execution_complete":
                call_end = event.payload()
                if call_end["outcome"] == "success":
                    print(call_end["content"])
                else:
                    print(f"{call_end['outcome']}: {call_end['tool_name']}")
        print(reply.content)


if __name__ == "__main__":
    trio.run(main)
