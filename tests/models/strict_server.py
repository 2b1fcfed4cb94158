"""What strict servers refuse in a chat completions request, as a check of one request's body.

A history with any of these is refused in every later request too: the session would never be answered again.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from exeunt.models.door.jsontext import is_dict, is_list
from exeunt.testing.http_double import HttpReply, HttpRequest, event_stream
from tests.models.openai_support import chunk, completion

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)
_TEXT_ROLES = ("system", "developer", "user")

RECOVERED = "Recovered."


def recovered(request: HttpRequest) -> HttpReply:
    """A plain answer, streamed if that was asked for. For `HttpDouble.otherwise`."""
    if request.json.get("stream"):
        return event_stream(chunk({"role": "assistant", "content": RECOVERED}), chunk({}, "stop"))
    return HttpReply(body=completion(RECOVERED))


def refusals(body: bytes) -> list[str]:
    """Return why a strict server refuses the request, empty if it does not."""
    try:
        request: Any = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        return [f"the body is no JSON: {error}"]
    if not is_dict(request):
        return ["the body is no object"]
    found: list[str] = []
    if any(_is_broken(text) for text in _texts(request)):
        found.append("half a surrogate pair")
    _check_tools(request.get("tools", [None]), found.append)
    messages = request.get("messages")
    if not is_list(messages) or not messages or not all(map(is_dict, messages)):
        return [*found, "no messages"]
    _check_messages(messages, found.append)
    return found


def _check_tools(tools: Any, say: Callable[[str], None]) -> None:
    if tools == [None]:
        return
    if not is_list(tools) or not tools:
        say("tools is empty")
        return
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) != len(names):
        say(f"two tools have one name: {names}")
    for tool in tools:
        _check_name(tool["function"]["name"], say)
        if tool["function"]["parameters"].get("type") != "object":
            say("the parameters of a tool are no object")


def _check_messages(messages: list[dict[str, Any]], say: Callable[[str], None]) -> None:
    ids: list[Any] = []
    open_calls: list[Any] = []
    """Calls without a result yet: nothing else may come before it."""
    for number, message in enumerate(messages):
        role = message.get("role")
        where = f"message {number} ({role})"
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                say(f"{where}: a result of no call, {message.get('tool_call_id')!r}")
            else:
                open_calls.remove(message["tool_call_id"])
            if not isinstance(message.get("content"), str):
                say(f"{where}: a result that is no text")
            continue
        if open_calls:
            say(f"{where}: the calls {open_calls} have no result")
            open_calls.clear()
        if role == "assistant":
            open_calls += _check_assistant(message, where, say)
            ids += open_calls
        elif role not in _TEXT_ROLES or not isinstance(message.get("content"), str):
            say(f"{where}: its role or its content is unknown")
    if open_calls:
        say(f"at the end: the calls {open_calls} have no result")
    if len(set(map(str, ids))) != len(ids):
        say(f"two calls have one id: {ids}")


def _check_assistant(message: dict[str, Any], where: str, say: Callable[[str], None]) -> list[Any]:
    calls = message.get("tool_calls")
    content = message.get("content")
    if "tool_calls" not in message:
        if not isinstance(content, str) or not content.strip():
            say(f"{where}: neither content nor calls")
        return []
    if not is_list(calls) or not calls:
        say(f"{where}: tool_calls is {calls!r}")
        return []
    if content is not None and (not isinstance(content, str) or not content.strip()):
        say(f"{where}: its content is blank")
    for call in calls:
        if not isinstance(call.get("id"), str) or not call["id"]:
            say(f"{where}: a call with the id {call.get('id')!r}")
        if call.get("type") != "function":
            say(f"{where}: a call of type {call.get('type')!r}")
        _check_name(call["function"].get("name"), say)
        _check_arguments(call["function"].get("arguments"), say)
    return [call.get("id") for call in calls]


def _check_name(name: Any, say: Callable[[str], None]) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        say(f"the name {name!r}")


def _check_arguments(text: Any, say: Callable[[str], None]) -> None:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (TypeError, ValueError, RecursionError):
        value = None
    if not is_dict(value):
        say(f"arguments that are no object: {text!r:.80}")
    elif any(map(_is_broken, _texts(value))):
        say("half a surrogate pair in arguments")


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _texts(value: Any) -> Iterable[str]:
    """All texts in *value*, keys too. Not recursive: what is checked may be nested deeply."""
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            yield each
        elif is_dict(each):
            todo += [*each.keys(), *each.values()]
        elif is_list(each):
            todo += each


def _is_broken(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
