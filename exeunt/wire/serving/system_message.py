"""The system message of a session, from what the client says of it."""

from collections.abc import Mapping

from exeunt.wire.instructions import Instructions
from exeunt.wire.messages.sessions import SessionConfig, SystemMessageConfig, SystemMessageSection

SECTIONS = (
    "identity",
    "tone",
    "tool_efficiency",
    "environment_context",
    "code_change_rules",
    "guidelines",
    "safety",
    "tool_instructions",
    "custom_instructions",
    "last_instructions",
)
"""The sections that clients know, in order. Here all are empty but for `IDENTITY` and `INSTRUCTIONS`."""

IDENTITY = "identity"
"""The section of the server's own text."""

INSTRUCTIONS = "custom_instructions"
"""The section of what was read from files that a client named, and of what its organization wants."""


def instructions_told(config: SessionConfig, instructions: Instructions | None) -> str:
    """Return what the model is told of instructions: the organization's, then those of files."""
    told = [config.organizationCustomInstructions or ""]
    if instructions is not None and not config.skipCustomInstructions:
        told.append(instructions.text)
    return _joined(*told) or ""


def own_sections(base: str, instructions: str) -> dict[str, str]:
    """Return the sections that have a text before a client says anything."""
    own = {IDENTITY: base, INSTRUCTIONS: instructions}
    return {name: text for name, text in own.items() if text}


def system_message(
    config: SystemMessageConfig | None,
    base: str,
    instructions: str = "",
    rewritten: Mapping[str, str] | None = None,
) -> str | None:
    """Return the text; *base* is the server's own, which `append` keeps and `replace` does not.

    *base* and *instructions* are sections of it, and *rewritten* is what a client has made of sections that it
    transforms. A text that replaces the whole leaves all of them out.
    """
    if config is None:
        return _joined(base, instructions)
    content = config.content or ""
    if config.mode == "replace":
        return content or None
    if config.mode != "customize":
        return _joined(base, instructions, content)
    own = own_sections(base, instructions)
    sections = {name: SystemMessageSection(action="preserve") for name in own} | (config.sections or {})
    order = [name for name in SECTIONS if name in sections]
    order += [name for name in sections if name not in SECTIONS]
    texts = own | dict(rewritten or {})
    return _joined(*(_section(sections[name], texts.get(name, "")) for name in order), content)


def _section(section: SystemMessageSection, text: str) -> str | None:
    """Return what becomes of a section that has *text*."""
    said = section.content or ""
    if section.action == "remove":
        return None
    if section.action == "replace":
        return said
    if section.action in ("append", "prepend"):
        return _joined(text, said) if section.action == "append" else _joined(said, text)
    return text


def _joined(*parts: str | None) -> str | None:
    return "\n\n".join(part for part in parts if part) or None
