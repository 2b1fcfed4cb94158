"""Hosts for threads in processes of their own: Ctrl-C, forks, and the end of the interpreter."""

import os

import pytest

from tests.embed.programs import Program

IN_A_TOOL = """
from exeunt.embed.threads import ToolInvocation, approve_all, open_host, tool

@tool
def work(invocation: ToolInvocation) -> str:
    print("working", flush=True)
    while not invocation.cancelled:
        nobody.wait(0.01)
    print("handler ended", flush=True)
    return ""

nobody = threading.Event()
"""


def test_an_interrupt_ends_the_wait_and_then_the_host_in_order() -> None:
    program = Program(
        IN_A_TOOL
        + """
with open_host() as host:
    watch(host)
    session = host.create_session(
        model=ScriptedModel([call("work")]), tools=[work], on_permission_request=approve_all
    )
    session.send_and_wait("go")
"""
    )
    program.until("working")
    program.interrupt()
    code, errors = program.end()
    # A thread cannot be killed: the handler sees the end when it looks, before or after the host has ended.
    ending = [line for line in program.lines if line not in ("handler ended", "tool.result_stale")]
    assert ending[-4:] == ["assistant.turn_end", "turn.end", "session.idle", "session.shutdown"]
    assert code in (1, -2)
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_a_program_may_go_on_after_an_interrupt() -> None:
    program = Program(
        IN_A_TOOL
        + """
with open_host() as host:
    session = host.create_session(
        model=ScriptedModel([call("work"), "next"]), tools=[work], on_permission_request=approve_all
    )
    try:
        session.send_and_wait("go")
    except KeyboardInterrupt:
        print("interrupted;", session.statistics().phase)
    session.abort()
    print(session.send_and_wait("on").content)
"""
    )
    program.until("working")
    program.interrupt()
    code, errors = program.end()
    assert (code, errors) == (0, "")
    # The handler sees the abort when it looks, which may be after the next turn.
    assert [line for line in program.lines if line != "handler ended"] == [
        "working",
        "interrupted; tools",
        "next",
    ]


def test_an_interpreter_that_ends_with_an_open_host_ends_it_in_order() -> None:
    program = Program(
        """
from exeunt.embed.threads import open_host

manager = open_host()
host = manager.__enter__()
watch(host)
session = host.create_session(model=ScriptedModel([hang()]))
session.send("go")
print("the program is over", flush=True)
"""
    )
    program.until("the program is over")
    assert program.end() == (0, "")
    assert program.lines[-1] == "session.shutdown"


def test_a_thread_that_waits_at_the_end_of_the_interpreter_is_let_go() -> None:
    program = Program("""
from exeunt.embed.threads import open_host

def wait():
    try:
        session.send_and_wait("go", timeout=None)
    except exeunt.ExeuntError as error:
        print("let go:", type(error).__name__, flush=True)

manager = open_host()
host = manager.__enter__()
session = host.create_session(model=ScriptedModel([hang()]))
threading.Thread(target=wait).start()
""")
    assert program.end() == (0, "")
    assert program.lines[0].startswith("let go: ")


def test_a_handler_that_never_returns_does_not_keep_the_interpreter() -> None:
    program = Program(
        """
from exeunt.embed import threads
from exeunt.embed.threads import approve_all, open_host, tool, runtime

runtime.LAST_WAIT = 0.5

@tool
async def stuck() -> str:
    print("stuck", flush=True)
    began.set()
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()
    return ""

began = threading.Event()
manager = open_host()
host = manager.__enter__()
session = host.create_session(
    model=ScriptedModel([call("stuck")]), tools=[stuck], on_permission_request=approve_all
)
session.send("go")
began.wait()
"""
    )
    program.until("stuck")
    code, errors = program.end()
    assert code == 0
    assert "did not end within 0.5 s" in errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_is_told_so_and_can_open_a_host_of_its_own() -> None:
    program = Program("""
from exeunt.embed.threads import open_host

with open_host() as host:
    session = host.create_session(model=ScriptedModel(["x"]))
    child = os.fork()
    if child == 0:
        for use in (lambda: session.send("x"), session.statistics, lambda: host.list_sessions()):
            try:
                use()
            except exeunt.HostForked as error:
                print("child:", type(error).__name__, flush=True)
        with open_host() as own:
            made = own.create_session(model=ScriptedModel(["from the child"]))
            print("child:", made.send_and_wait("x").content, flush=True)
    else:
        os.waitpid(child, 0)
        print(session.send_and_wait("x").content, flush=True)
print("child" if child == 0 else "parent", "left in order", flush=True)
""")
    code, errors = program.end()
    assert (code, errors) == (0, "")
    assert program.lines == [
        "child: HostForked",
        "child: HostForked",
        "child: HostForked",
        "child: from the child",
        "child left in order",
        "x",
        "parent left in order",
    ]
