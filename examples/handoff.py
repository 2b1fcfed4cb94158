"""An agent that works in phases: it clears its context between them and hands itself a note.

The first phase reads a lot and needs little of it later. So the agent writes down what counts, and the next phase
begins with that note alone, with tools and instructions of its own. In the middle of the second phase the context grows
past a mark all the same; the agent ignores the reminders, and the policy hands off with a summary.

Scripted models stand in for real ones: give `create_session` a model's name and a provider instead, and the rest stays
as it is.
"""

import trio

from exeunt import approve_all, open_host, tool
from exeunt.policies import HandoffPolicy, Phase, PhasePolicy, messages
from exeunt.testing import ScriptedModel, call, say

FILES = {
    "api.py": "def get(id): ...",
    "web.py": "from api import get",
    "cli.py": "import api; api.get(1)",
}


@tool
def read_file(name: str) -> str:
    """Read a file of the project."""
    return FILES[name]


@tool(sequential=True)
def rename(name: str, old: str, new: str) -> str:
    """Rename a function in one file."""
    FILES[name] = FILES[name].replace(old, new)
    return f"{name}: {FILES[name]}"


PHASES = PhasePolicy(
    [
        Phase(
            name="plan",
            developer_message="Find out what is to be changed. Change nothing.",
            tools=[read_file],
        ),
        Phase(name="change", developer_message="Do what was decided, and no more.", tools=[rename]),
        Phase(
            name="review", developer_message="Read what was changed and judge it.", tools=[read_file], next=()
        ),
    ]
)

SUMMARIES = ScriptedModel([say("Renaming get to fetch_record: api.py and web.py are done, cli.py is left.")])

# Real ones allow more: tokens(100_000), or share(0.8, window=128_000).
HANDOFF = HandoffPolicy(at=messages(3), remind_every=1, force_after=1, summarize=SUMMARIES)

MODEL = ScriptedModel(
    [
        [call("read_file", name="api.py"), call("read_file", name="web.py")],
        call("next_phase", decisions="Rename get to fetch_record in api.py, web.py and cli.py."),
        call("rename", name="api.py", old="get", new="fetch_record"),
        call("rename", name="web.py", old="get", new="fetch_record"),
        call("rename", name="cli.py", old="get", new="fetch_record"),
        call("next_phase", decisions="get is fetch_record now, in three files."),
        call("read_file", name="cli.py"),
        say("Done: 3 files changed, and they fit together."),
    ]
)


async def main() -> None:
    async with open_host() as host:
        session = await PHASES.create_session(
            host,
            **HANDOFF.extend(
                model=MODEL, system_message="You refactor code.", on_permission_request=approve_all
            ),
        )
        reply = await session.send_and_wait("Give the function get a better name.")
        for event in await session.get_events():
            data = event.payload()
            if event.type == "session.handoff":
                print(f"  {data['action']}: past the mark of {data['trigger']}")
            elif event.type == "session.context_cleared":
                print(f"{data['trigger']}: {data['messages_cleared']} messages were put away")
                print(f"  {data['initial_message'].splitlines()[-1]}")
        print(f"{await PHASES.phase_of(session)}: {reply.content}")


if __name__ == "__main__":
    trio.run(main)
