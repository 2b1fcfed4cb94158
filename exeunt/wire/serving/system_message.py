"""The system message of a session, from what the client says of it."""

from exeunt.wire.messages.sessions import SystemMessageConfig, SystemMessageSection

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
"""The sections that clients know, in order. Each is empty here, as the host has no instructions of its own, but for
`INSTRUCTIONS`."""

INSTRUCTIONS = "custom_instructions"
"""The section of what was read from files that a client named, and of what its organization wants."""


def system_message(config: SystemMessageConfig | None, base: str, instructions: str = "") -> str | None:
    """Return the text; *base* is the server's own, which `append` keeps and `replace` does not.

    *instructions* are one of its sections: a text that replaces the whole of it leaves them out.
    """
    if config is None:
        return _joined(base, instructions)
    content = config.content or ""
    if config.mode == "replace":
        return content or None
    if config.mode != "customize":
        return _joined(base, instructions, content)
    sections = dict(config.sections or {})
    if instructions:
        sections.setdefault(INSTRUCTIONS, SystemMessageSection(action="preserve"))
    order = [name for name in SECTIONS if name in sections]
    order += [name for name in sections if name not in SECTIONS]
    own = {INSTRUCTIONS: instructions}
    return _joined(base, *(_section(sections[name], own.get(name, "")) for name in order), content)


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
