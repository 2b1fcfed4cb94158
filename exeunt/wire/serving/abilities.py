"""What the clients of a session can do for it, and what of that they tell each other."""

from typing import TYPE_CHECKING

from exeunt.wire.serving.client import Client

if TYPE_CHECKING:
    from exeunt.wire.serving.served import Served


def elicits(served: "Served") -> bool:
    """Say whether any client can show a form to a person."""
    return any(client.config.requestElicitation for client in served.clients.values())


def delegates_commands(served: "Served") -> bool:
    """Say whether any client has asked to be told of queued commands, and so runs them."""
    return any(client.wants("command.queued") for client in served.clients.values())


def commands(served: "Served") -> list[dict[str, str]]:
    """Return the slash commands of its clients; of two with one name, that of the client that came last."""
    found: dict[str, dict[str, str]] = {}
    for client in served.clients.values():
        for command in client.config.commands or ():
            found[command.name] = {"name": command.name}
            if command.description:
                found[command.name]["description"] = command.description
    return list(found.values())


def tell_what_came(served: "Served", client: Client) -> None:
    """Tell the other clients what this one can do."""
    able = sum(bool(one.config.requestElicitation) for one in served.clients.values())
    if client.config.requestElicitation and able == 1:
        served.tell_others(client, "capabilities.changed", {"ui": {"elicitation": True}})
    if client.config.commands:
        served.tell_others(client, "commands.changed", {"commands": commands(served)})


def tell_what_left(served: "Served", client: Client) -> None:
    """Tell the other clients what nobody can do any more."""
    if client.config.requestElicitation and not elicits(served):
        served.notify("capabilities.changed", {"ui": {"elicitation": False}})
    if client.config.commands:
        served.notify("commands.changed", {"commands": commands(served)})
