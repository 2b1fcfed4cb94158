"""Whether and where a server's metrics can be scraped."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

import attrs

from exeunt.actors.errors import InvalidConfiguration
from exeunt.cli.serve.switches import whole_number
from exeunt.metrics import Metrics, open_exposition

PORT = "EXEUNT_METRICS_PORT"
ADDRESS = "EXEUNT_METRICS_HOST"

LOOPBACK = "127.0.0.1"


@attrs.frozen(kw_only=True)
class ScrapeOptions:
    """Where metrics are served."""

    port: int
    """0: any free one."""
    address: str = LOOPBACK


def scrape_options(
    environ: Mapping[str, str], *, port: int | None = None, address: str | None = None
) -> ScrapeOptions | None:
    """Return where metrics are served: as the options say, or else the variables; `None` for nowhere.

    Raises `InvalidConfiguration` for a port that is none, and for an address without a port.
    """
    chosen = whole_number(environ, PORT, least=0, most=65_535) if port is None else port
    where = address or environ.get(ADDRESS) or None
    if chosen is None:
        if where is not None:
            raise InvalidConfiguration(
                f"metrics have an address, {where!r:.80}, and no port: give --metrics-port or {PORT}"
            )
        return None
    return ScrapeOptions(port=chosen, address=where or LOOPBACK)


@asynccontextmanager
async def open_scraping(
    options: ScrapeOptions | None, metrics: Metrics, say: Callable[[str], object]
) -> AsyncGenerator[None]:
    """Serve *metrics* in the body, and *say* under which URL. Raises `EndpointUnavailable`."""
    if options is None:
        yield
        return
    async with open_exposition(metrics, options.address, options.port) as exposition:
        say(exposition.url)
        yield
