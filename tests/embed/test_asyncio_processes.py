"""Hosts on asyncio in processes of their own: Ctrl-C, forks, and the end of the interpreter."""

import sys

import pytest

from tests.embed.programs import Program

IN_A_TOOL = """
from exeunt.embed.asyncio import approve_all, open_host, tool

@tool
async def work() -> str:
    print("working", flush=True)
    try:
        await asyncio.sleep(1000)
    finally:
        print("handler ended", flush=True)
    return ""

async def main():
    async with open_host() as host:
        watch(host)
        session = await host.create_session(
            model=ScriptedModel([call("work")]), tools=[work], on_permission_request=approve_all
        )
        await session.send_and_wait("go")
"""

RUNNERS = {
    "asyncio.run": "asyncio.run(main())",
    "uvloop.run": "import uvloop; uvloop.run(main())",
    "run_until_complete": "asyncio.new_event_loop().run_until_complete(main())",
}


@pytest.mark.parametrize("runner", [name for name in RUNNERS if name != "run_until_complete"])
def test_an_interrupt_ends_the_host_in_order(runner: str) -> None:
    program = Program(IN_A_TOOL + RUNNERS[runner])
    program.until("working")
    program.interrupt()
    code, errors = program.end()
    assert program.lines[-6:] == [
        "handler ended",
        "tool.execution_complete",
        "assistant.turn_end",
        "turn.end",
        "session.idle",
        "session.shutdown",
    ]
    assert code in (1, -2)
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_an_interrupt_that_stops_a_bare_loop_ends_the_host_with_the_interpreter() -> None:
    program = Program(IN_A_TOOL + RUNNERS["run_until_complete"])
    program.until("working")
    program.interrupt()
    code, errors = program.end()
    assert "session.shutdown" in program.lines
    assert code in (1, -2)
    assert "KeyboardInterrupt" in errors
    assert "TrioInternalError" not in errors
    assert "guest run got abandoned" not in errors


def test_an_interpreter_that_ends_with_an_open_host_does_not_hang_and_ends_it() -> None:
    program = Program("""
from exeunt.embed.asyncio import open_host

async def main():
    kept.append(open_host())
    host = await kept[0].__aenter__()
    watch(host)
    session = await host.create_session(model=ScriptedModel([hang()]))
    await session.send("go")

kept = []
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
print("the program is over", flush=True)
""")
    program.until("the program is over")
    code, errors = program.end()
    assert code == 0
    assert program.lines[-1] == "session.shutdown"
    assert "abandoned" not in errors


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="there is no fork here")
def test_a_fork_is_told_that_the_host_is_in_its_parent() -> None:
    program = Program("""
from exeunt.embed.asyncio import open_host

async def main():
    async with open_host() as host:
        session = await host.create_session(model=ScriptedModel(["x"]))
        child = os.fork()
        if child == 0:
            for use in (session.send("x"), host.create_session(model=ScriptedModel([])), open_host().__aenter__()):
                try:
                    await use
                except exeunt.HostForked as error:
                    print("child:", type(error).__name__, flush=True)
            try:
                session.statistics()
            except exeunt.HostForked:
                print("child: HostForked", flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print((await session.send_and_wait("x")).content)

asyncio.run(main())
""")
    code, errors = program.end()
    assert (code, errors) == (0, "")
    assert program.lines == ["child: HostForked"] * 4 + ["x"]


def test_importing_the_embedding_needs_no_web_framework_and_no_other_loop() -> None:
    program = Program(
        "import exeunt.embed.asyncio, exeunt.embed.threads\n"
        "print(sorted({'uvloop', 'fastapi', 'flask', 'starlette'} & set(sys.modules)))"
    )
    assert program.end() == (0, "")
    assert program.lines == ["[]"]
    assert sys.version_info >= (3, 11)


def test_importing_exeunt_does_not_import_asyncio() -> None:
    program = Program("import subprocess\nprint('exeunt.embed' in sys.modules)")
    assert program.end() == (0, "")
    assert program.lines == ["False"]
