"""As many clients as the system lets a server have."""

import re
import sys
from collections.abc import Generator

import pytest
import trio

from exeunt import allow_many_files
from tests.cli.programs import EXEUNT, LONGEST, environment
from tests.wire.wire_client import WireClient

CLIENTS = 1_000
FEW, MANY = 256, 20_000

RUNTIME = (sys.executable, "-c", "from exeunt.cli.serve.runtime import main; main()")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of open files")


@pytest.fixture
def files() -> Generator[None]:
    """Allow this process, too, a file for each client, while the test lasts."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = allow_many_files()
    if most is not None and most < 2 * CLIENTS:
        pytest.skip(f"this system allows {most} open files")
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def have_few() -> None:
    """In the new process: begin with a low soft limit, as services do."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (FEW, MANY if hard == resource.RLIM_INFINITY else min(hard, MANY))
    )


@pytest.mark.parametrize("program", [(*EXEUNT, "serve"), RUNTIME], ids=["serve", "runtime"])
async def test_a_thousand_clients_at_once_are_served_whatever_the_soft_limit_is(
    program: tuple[str, ...], files: None
) -> None:
    with trio.fail_after(LONGEST):
        process = await trio.lowlevel.open_process(
            [*program, "--port", "0", "--log-level", "warning"],
            stdout=-1,
            stderr=-1,
            env=environment(),
            preexec_fn=have_few,
        )
        try:
            assert process.stdout is not None
            said = (await process.stdout.receive_some()).decode()
            port = int(re.search(r"port (\d+)", said)[1])  # type: ignore[index] # pyright: ignore[reportOptionalSubscript]
            clients: list[WireClient] = []
            async with trio.open_nursery() as nursery:
                for _ in range(CLIENTS):
                    clients.append(WireClient(await trio.open_tcp_stream("127.0.0.1", port)))
                    nursery.start_soon(clients[-1].run)
                for client in clients:
                    answer = await client.call("ping", message="here")
                    assert answer["message"].endswith("here")
                nursery.cancel_scope.cancel()
            for client in clients:
                await trio.aclose_forcefully(client.stream)
            process.terminate()
            assert await process.wait() == 0
            assert process.stderr is not None
            assert (await process.stderr.receive_some()).decode() == ""
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()
