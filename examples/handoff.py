"""An agent that works in phases: it clears its context between them and hands itself a note.

The first phase reads a lot and needs little of it later. So the agent writes down what counts, and the second phase
begins with that note alone. A scripted model stands in for a real one: give `create_session` a model's name and a
provider instead, and the rest stays as it is.
"""

import trio

from exeunt import ToolInvocation, approve_all, open_host, tool
from exeunt.testing import ScriptedModel, call, say

FILES = {"api.py": "def get(id): ...", "web.py": "from api import get"}


@tool
def read_file(name: str) -> str:
    """Read a file of the project."""
    return FILES[name]


@tool(sequential=True)
def rename(old: str, new: str) -> str:
    """Rename a function everywhere."""
    changed = [name for name, text in FILES.items() if old in text]
    for name in changed:
        FILES[name] = FILES[name].replace(old, new)
    return f"{len(changed)} files changed"


@tool(is_terminal=True, defer="never")
async def next_phase(note: str, invocation: ToolInvocation) -> str:
    """Finish this phase. The next one knows nothing but the note."""
    result = await invocation.session.history.clear_context(note)
    return f"The next phase begins; {result.messages_cleared} messages were put away."


MODEL = ScriptedModel(
    [
        [call("read_file", name="api.py"), call("read_file", name="web.py")],
        call("next_phase", note="Rename the function get to fetch_record. Nothing else is to change."),
        call("rename", old="get", new="fetch_record"),
        say("Done: 2 files changed."),
    ]
)


async def main() -> None:
    async with open_host() as host:
        session = await host.create_session(
            model=MODEL,
            tools=[read_file, rename, next_phase],
            system_message="You refactor code. Plan first, then change it.",
            on_permission_request=approve_all,
        )
        reply = await session.send_and_wait("Give the function get a better name.")
        for turn in reply.turns:
            print(f"generation {turn.generation}: {turn.reason}: {turn.content}")
        print(reply.content)
        first_request_of_phase_2 = MODEL.requests[2].messages
        print(f"The second phase began with {len(first_request_of_phase_2)} messages.")


if __name__ == "__main__":
    trio.run(main)
