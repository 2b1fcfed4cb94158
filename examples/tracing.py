"""Traces of a session: what one request of a user has set in motion, as a tree.

Needs `pip install 'exeunt[otel]'`. The spans stay in memory here; a service gives its provider an exporter.
"""

from collections.abc import Sequence

import trio
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from exeunt import ToolInvocation, open_host, tool
from exeunt.telemetry import Telemetry
from exeunt.testing import ScriptedModel, call, fail

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
tracer = provider.get_tracer("the shop")


@tool(skip_permission=True)
async def find_order(number: int) -> str:
    """Find an order."""
    with tracer.start_as_current_span("SELECT orders"):  # of a database client, say
        await trio.sleep(0.01)
    return f"Order {number}: two lamps."


@tool(skip_permission=True, is_terminal=True)
async def start_over(prompt: str, invocation: ToolInvocation) -> str:
    """Begin with an empty context."""
    result = await invocation.session.history.clear_context(prompt)
    return f"Cleared {result.messages_cleared} messages."


async def main() -> None:
    model = ScriptedModel(
        [
            fail("overloaded", "busy", retry=True, retry_after=0.01),
            call("find_order", number=7),
            call("start_over", prompt="Order 7 is two lamps. Tell the customer."),
            "Your two lamps are on their way.",
        ]
    )
    async with open_host(telemetry=Telemetry(provider, agent_name="clerk")) as host:
        session = await host.create_session(model=model, tools=[find_order, start_over])
        with tracer.start_as_current_span("POST /chat"):  # of a web framework, say
            await session.send_and_wait("Where is my order 7?")
    show(spans.get_finished_spans())


def show(finished: Sequence[ReadableSpan], parent: int | None = None, depth: int = 0) -> None:
    """Print the spans below *parent*, in the order in which they began."""
    children = [span for span in finished if (span.parent.span_id if span.parent else None) == parent]
    for span in sorted(children, key=lambda span: (span.start_time or 0, span.end_time or 0)):
        about = dict(span.attributes or {})
        reason = about.get("exeunt.turn.reason") or about.get("exeunt.tool.outcome") or ""
        print("  " * depth + span.name, *([f"({reason})"] if reason else []))
        for event in span.events:
            print("  " * (depth + 1) + f"- {event.name}")
        for link in span.links:
            print("  " * (depth + 1) + "->", dict(link.attributes or {})["exeunt.link"])
        show(finished, span.context.span_id if span.context else None, depth + 1)


if __name__ == "__main__":
    trio.run(main)
