"""A batch job: ten thousand sessions, each with a task of its own, at most 500 at work at once.

    python examples/batch_job.py --sessions 10000 --journal sqlite:///batch.sqlite3

With a journal the job may be killed at any time and started again: what is done is not done again, what was in the
middle goes on.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import trio

from exeunt import (
    Event,
    HostOptions,
    ModelError,
    ModelErrorKind,
    RetryPolicy,
    SessionExists,
    SessionHost,
    TurnFailed,
    open_host,
    tool,
    tune_garbage_collector,
)
from exeunt.testing import ScriptedModel, call, fail, say

AT_ONCE = 500
"""Sessions at work. A real model's rate limit says how many are of use."""


@tool(skip_permission=True)
async def classify(label: str, sure: float) -> str:
    """Note what a text is about."""
    return json.dumps({"label": label, "sure": sure})


def script(session_id: str) -> list[Any]:
    """What the model answers: in one of 100 it is overloaded once, in one of 1,000 it refuses."""
    number = int(session_id.removeprefix("text-"))
    answers: list[Any] = [
        call("classify", label=("praise", "question", "complaint")[number % 3], sure=0.9),
        say("done"),
    ]
    if number % 1000 == 999:
        return [fail(ModelError(ModelErrorKind.CONTENT_FILTERED, "not this text"))]
    if number % 100 == 50:
        return [fail(ModelError(ModelErrorKind.OVERLOADED, "later", retry=True)), *answers]
    return answers


async def one(host: SessionHost, model: ScriptedModel, number: int, results: Counter[str]) -> None:
    """One task from its beginning to its end, or to the reason why there is no result."""
    name = f"text-{number}"
    options: dict[str, Any] = {
        "model": model,
        "tools": [classify],
        "system_message": "Say what the text is about.",
        "retries": RetryPolicy(first_delay=0.01),
    }
    try:
        session = await host.create_session(session_id=name, **options)
    except SessionExists:  # of the run before
        session = await host.resume_session(name, continue_pending_work=True, **options)
    if session.history.messages()[-1].content != "done":
        try:
            await session.send_and_wait(f"Text number {number}: ...", timeout=600)
        except TurnFailed as error:
            cause = error.__cause__
            results[f"failed: {cause.kind}" if isinstance(cause, ModelError) else "failed"] += 1
    labels = [m.content for m in session.history.messages() if m.role == "tool"]
    if labels:
        results[json.loads(labels[0])["label"]] += 1
    await session.disconnect()


async def main(sessions: int, journal: str | None) -> None:
    tune_garbage_collector()
    results, began = Counter[str](), time.perf_counter()
    model = ScriptedModel.per_session(script, record=False)
    retries: list[Event] = []

    def watch(session_id: str, events: Sequence[Event]) -> None:
        retries.extend(event for event in events if event.type == "assistant.turn_retry")

    async with open_host(journal=journal, options=HostOptions(remembered_options=0)) as host:
        host.observe(watch)
        limit = trio.CapacityLimiter(AT_ONCE)

        async def when_there_is_room(number: int) -> None:
            async with limit:
                await one(host, model, number, results)

        async with trio.open_nursery() as nursery:
            for number in range(sessions):
                nursery.start_soon(when_there_is_room, number)
        seconds = time.perf_counter() - began
    for label, count in sorted(results.items()):
        print(f"{label}: {count}")
    print(f"{sum(results.values())} sessions, {len(retries)} model calls tried again")
    print(f"{sessions / seconds:,.0f} sessions a second")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--journal")
    chosen = parser.parse_args()
    trio.run(main, chosen.sessions, chosen.journal)
