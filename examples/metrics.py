"""Serve a host's metrics to Prometheus, and look at them as Prometheus does."""

import urllib.request

import trio

from exeunt import open_host
from exeunt.metrics import open_exposition
from exeunt.testing import ScriptedModel


def scrape(url: str) -> list[str]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        text: str = answer.read().decode()
    return text.splitlines()


async def main() -> None:
    model = ScriptedModel([], default="Hello.")
    # Port 0 takes any that is free; a service chooses one and keeps the address to its own network.
    async with open_host() as host, open_exposition(host.metrics, port=0) as exposition:
        for _ in range(3):
            session = await host.create_session(model=model)
            await session.send_and_wait("hello")
        for line in await trio.to_thread.run_sync(scrape, exposition.url):
            if line.startswith(("exeunt_turn_terminations_total", "exeunt_sessions")):
                print(line)


if __name__ == "__main__":
    trio.run(main)
