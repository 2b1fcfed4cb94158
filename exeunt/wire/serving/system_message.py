"""The system message of a session, from what the client says of it."""

from exeunt.wire.messages.sessions import SystemMessageConfig

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
"""The sections that clients know, in order. Here each is empty: the host has no instructions of its own."""


def system_message(config: SystemMessageConfig | None, base: str) -> str | None:
    """Return the text; *base* is the server's own, which `append` keeps and `replace` does not."""
    if config is None:
        return base or None
    content = config.content or ""
    if config.mode == "replace":
        return content or None
    parts = [base]
    if config.mode == "customize":
        sections = config.sections or {}
        order = [name for name in SECTIONS if name in sections]
        order += [name for name in sections if name not in SECTIONS]
        for name in order:
            section = sections[name]
            if section.action not in ("remove", "transform", "preserve"):
                parts.append(section.content or "")
    parts.append(content)
    return "\n\n".join(part for part in parts if part) or None
