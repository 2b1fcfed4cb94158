"""The embedded hosts have the names of the trio API, with the same parameters, and nothing is forgotten."""

import inspect
import typing
from typing import Any

import pytest

import exeunt
import exeunt.embed.asyncio as on_asyncio
import exeunt.embed.threads as in_threads
from exeunt.configuration import SessionKeywords, build_options
from exeunt.supervisor.host import HostCore

EMBEDDINGS = (on_asyncio, in_threads)
HANDLES = (
    "ClearResult",
    "EventStream",
    "History",
    "HookInvocation",
    "RemoteEventStream",
    "RemoteHistory",
    "RemoteSession",
    "Session",
    "SessionHost",
    "ToolInvocation",
)

ROOM = {
    # What the actors and the supervisor use of the host, and no program does. `run_trio` reaches it all the same.
    "SessionHost": {name for name in dir(HostCore) if not name.startswith("_")}
    - {
        "attach_remote",
        "delete_session",
        "get_session",
        "list_sessions",
        "observe",
        "pending_requests",
        "prune_sessions",
        "run_from_thread",
        "statistics",
    }
    | {"resolve", "prepare"},
    # Told by the session.
    "EventStream": {"moved"},
}
NEEDED_ON_A_LOOP_ONLY = {("SessionHost", "run_from_thread")}
"""A blocking method can be called from any thread."""

RENAMED = {"aclose": "close"}
"""Of asynchronous methods, in threads."""


def methods(owner: type, room: set[str]) -> dict[str, Any]:
    """The public methods and properties of a class of the trio API."""
    return {
        name: getattr(owner, name)
        for name in dir(owner)
        if not name.startswith("_")
        and name not in room
        and (inspect.isfunction(getattr(owner, name)) or isinstance(getattr(owner, name), property))
    }


PAIRS = [
    pytest.param(embedding, kind, name, member, id=f"{embedding.__name__}-{kind}.{name}")
    for embedding in EMBEDDINGS
    for kind in HANDLES
    for name, member in methods(getattr(exeunt, kind), ROOM.get(kind, set())).items()
]


def parameters(function: Any) -> list[tuple[str, Any, Any, str]]:
    """Names, kinds, defaults and types of parameters; types by their names, since each kind of host has its own."""
    hints = typing.get_type_hints(function, localns=vars(exeunt))
    return [
        (name, parameter.kind, parameter.default, plain(hints.get(name)))
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self"
    ]


def plain(hint: Any) -> str:
    """The text of a type, without where the class comes from."""
    text = hint.__name__ if inspect.isclass(hint) and not typing.get_args(hint) else str(hint)
    for module in ("exeunt.embed.asyncio", "exeunt.embed.threads", "exeunt.actors.session", "exeunt.actors"):
        text = text.replace(module + ".", "")
    return text.rsplit(".", 1)[-1] if "[" not in text else text


@pytest.mark.parametrize(("embedding", "kind", "name", "member"), PAIRS)
def test_a_method_of_the_trio_api_has_its_counterpart(
    embedding: Any, kind: str, name: str, member: Any
) -> None:
    here = getattr(embedding, kind)
    if embedding is in_threads and (kind, name) in NEEDED_ON_A_LOOP_ONLY:
        return
    name = RENAMED.get(name, name) if embedding is in_threads else name
    assert hasattr(here, name), f"{embedding.__name__}.{kind} has no {name}()"
    counterpart = getattr(here, name)
    if isinstance(member, property):
        assert isinstance(counterpart, property)
        return
    awaited = inspect.iscoroutinefunction(member)
    assert inspect.iscoroutinefunction(counterpart) == (awaited and embedding is on_asyncio)
    if (kind, name) != ("ToolInvocation", "run"):  # takes coroutines of its own kind
        assert parameters(counterpart) == parameters(member)
        there, given = (
            typing.get_type_hints(function, localns=vars(exeunt)) for function in (member, counterpart)
        )
        assert plain(given.get("return")) == plain(there.get("return"))


@pytest.mark.parametrize("embedding", EMBEDDINGS)
@pytest.mark.parametrize("kind", HANDLES)
def test_a_handle_has_the_docstrings_of_the_trio_api(embedding: Any, kind: str) -> None:
    there, here = getattr(exeunt, kind), getattr(embedding, kind)
    assert here.__doc__.startswith(inspect.cleandoc(there.__doc__))
    for name, member in methods(there, ROOM.get(kind, set())).items():
        if embedding is in_threads and (kind, name) in NEEDED_ON_A_LOOP_ONLY:
            continue
        name = RENAMED.get(name, name) if embedding is in_threads else name
        if inspect.isfunction(member):
            said = getattr(here, name).__doc__
            assert said
            assert said.startswith(inspect.cleandoc(member.__doc__ or "")) or (kind, name) in OWN_WORDS


OWN_WORDS = {("ToolInvocation", "run"), ("EventStream", "aclose"), ("EventStream", "close")} | {
    ("RemoteEventStream", name) for name in ("aclose", "close")
}


@pytest.mark.parametrize("embedding", EMBEDDINGS)
def test_a_host_is_opened_with_the_keywords_of_the_trio_api(embedding: Any) -> None:
    def keywords(function: Any) -> list[tuple[str, Any, Any]]:
        found = inspect.signature(function).parameters.values()
        return [(parameter.name, parameter.kind, parameter.default) for parameter in found]

    assert keywords(embedding.open_host) == keywords(exeunt.open_host)


@pytest.mark.parametrize("embedding", EMBEDDINGS)
def test_a_name_that_the_trio_api_has_means_the_same(embedding: Any) -> None:
    shared = set(embedding.__all__) & set(exeunt.__all__)
    assert {*HANDLES, "open_host"} <= shared
    assert all(getattr(embedding, name) is getattr(exeunt, name) for name in shared - {*HANDLES, "open_host"})


@pytest.mark.parametrize("embedding", EMBEDDINGS)
def test_each_public_class_and_function_says_what_it_is_for(embedding: Any) -> None:
    assert [name for name in embedding.__all__ if not getattr(embedding, name).__doc__] == []


def test_the_typed_keywords_of_a_session_are_those_that_are_taken() -> None:
    taken = typing.get_type_hints(build_options)
    del taken["return"]
    assert typing.get_type_hints(SessionKeywords) == taken
