"""Pictures, documents and other data that a message or a tool's result brings to the model.

What a model can be shown, and how, is its door's business; here is what is kept, and how much of it.
"""

import base64
import binascii
import re
from collections.abc import Iterable
from typing import Any, Literal, cast

import attrs
import msgspec

from exeunt.actors.errors import InvalidConfiguration, InvalidMedia, MediaTooLarge

MediaKind = Literal["image", "document", "resource"]

MIB = 1024 * 1024

LONGEST_NAME = 4096
"""Characters: the longest path of the usual systems."""

_MIME_TYPE = re.compile(
    r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}(\s*;[ -~]{0,256})?", re.ASCII | re.IGNORECASE
)

_TEXTS = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/sql",
        "application/toml",
        "application/typescript",
        "application/x-httpd-php",
        "application/x-javascript",
        "application/x-ndjson",
        "application/x-python",
        "application/x-sh",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
"""Types that are text, though their name begins otherwise."""


class Media(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A picture, a document or other data beside the text of a message. Immutable.

    Raises `InvalidMedia` without data, or for a type or name that cannot be one. Whether the data are what their type
    says is not looked into here: the doors to the models leave out what no model would take, and say so to the model.
    """

    mime_type: str
    """Such as `image/png`, `application/pdf` or `text/csv`."""
    data: bytes
    name: str = ""
    """What people call it: the name of a file, or what it shows. The model reads it too."""

    def __post_init__(self) -> None:
        mime_type, data, name = cast("tuple[Any, Any, Any]", (self.mime_type, self.data, self.name))
        if not isinstance(mime_type, str) or not _MIME_TYPE.fullmatch(mime_type):
            raise InvalidMedia(f"a MIME type is a text such as 'image/png', not {mime_type!r:.80}")
        if not isinstance(data, bytes) or not data:
            what = "none" if isinstance(data, bytes) else type(data).__name__
            raise InvalidMedia(f"the data of {mime_type} are bytes, at least one; not {what}")
        if not isinstance(name, str) or len(name) > LONGEST_NAME:
            raise InvalidMedia(
                f"the name of media is a text of at most {LONGEST_NAME} characters, not {name!r:.80}"
            )
        try:
            _ = name.isascii() or name.encode()
        except UnicodeEncodeError as error:
            raise InvalidMedia(f"the name {name!r:.80} holds half a surrogate pair") from error

    def __repr__(self) -> str:
        return f"<Media {self}>"

    def __str__(self) -> str:
        # On one line: models read this too, and take lines of their own for more than a name.
        name = f"{' '.join(self.name.split())}, " if self.name else ""
        return f"{name}{self.mime_type}, {readable_size(len(self.data))}"

    @property
    def essence(self) -> str:
        """The MIME type without parameters, in lower case."""
        return self.mime_type.partition(";")[0].strip().lower()

    @property
    def kind(self) -> MediaKind:
        """`image`, `document` (a text or a PDF), or `resource`: anything else."""
        essence = self.essence
        if essence == "application/pdf" or _is_text(essence):
            return "document"
        return "image" if essence.startswith("image/") else "resource"

    @property
    def text(self) -> str | None:
        """The text of a document that is one; `None` for what is no text, or not in UTF-8."""
        if not _is_text(self.essence):
            return None
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None

    @property
    def base64(self) -> str:
        """The data as base64, made anew."""
        return binascii.b2a_base64(self.data, newline=False).decode("ascii")

    @classmethod
    def from_base64(cls, mime_type: str, data: str, name: str = "") -> "Media":
        """Return media of base64 (RFC 4648, also with line breaks). Raises `InvalidMedia`."""
        try:
            return cls(mime_type, base64.b64decode("".join(data.split()), validate=True), name)
        except (AttributeError, ValueError) as error:
            if isinstance(error, InvalidMedia):
                raise
            raise InvalidMedia(f"the data of {name or mime_type!r:.80} are no base64: {error}") from error


def _is_text(essence: str) -> bool:
    return essence.startswith("text/") or essence in _TEXTS or essence.endswith(("+json", "+xml", "+yaml"))


_UNITS = ("bytes", "KiB", "MiB", "GiB")


def readable_size(size: int) -> str:
    """Return a number of bytes as people write it."""
    if size < 1024:
        return f"{size} bytes"
    exponent = min(max(size.bit_length() - 1, 0) // 10, 3)
    amount = size / 1024**exponent
    # Three figures, and never as a power of ten: what a unit can hold are four.
    return f"{amount:.3g} {_UNITS[exponent]}" if amount < 999.5 else f"{amount:.0f} {_UNITS[exponent]}"


# --- How much ------------------------------------------------------------------------------------------------


def _bytes(instance: object, attribute: "attrs.Attribute[int]", value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidConfiguration(f"{attribute.name} is a number of bytes, at least 0, not {value!r:.80}")


@attrs.frozen(kw_only=True)
class MediaLimits:
    """How much media a session takes in, in bytes. With 0, none."""

    item: int = attrs.field(default=10 * MIB, validator=_bytes)
    """One picture or document. Larger ones are refused by most providers."""
    message: int = attrs.field(default=20 * MIB, validator=_bytes)
    """All of one message, or of one tool's result."""
    session: int = attrs.field(default=20 * MIB, validator=_bytes)
    """What the context holds; and what may wait for it, once more. As base64 in one request these are 27 MiB, and
    the lowest bound of a large provider is 32. Where the context would hold more, the oldest leave it."""


DEFAULT_MEDIA_LIMITS = MediaLimits()


def checked_media(attachments: Iterable[Any]) -> tuple[Media, ...]:
    """Return what is attached to a message. Raises `InvalidMedia`."""
    if isinstance(cast("Any", attachments), (Media, str, bytes)) or not isinstance(
        cast("Any", attachments), Iterable
    ):
        raise InvalidMedia(f"attachments are a list of Media, not {attachments!r:.80}")
    media = tuple(attachments)
    for one in media:
        if not isinstance(one, Media):
            raise InvalidMedia(f"attachments are Media, such as Media('image/png', data), not {one!r:.80}")
    return media


def total_size(media: Iterable[Media]) -> int:
    """Return the bytes of all of them."""
    return sum(len(one.data) for one in media)


def check_size(media: tuple[Media, ...], limits: MediaLimits) -> None:
    """Refuse what a message may not bring. Raises `MediaTooLarge`."""
    for one in media:
        if len(one.data) > limits.item:
            raise MediaTooLarge(
                f"{one} is more than the {readable_size(limits.item)} that one attachment may have; send a smaller "
                "one, or raise media_limits"
            )
    size, most = total_size(media), min(limits.message, limits.session)
    if size > most:
        raise MediaTooLarge(
            f"the attachments have {readable_size(size)}, and those of one message may have {readable_size(most)}; "
            "send fewer, or raise media_limits"
        )


def within(media: tuple[Media, ...], limits: MediaLimits) -> tuple[tuple[Media, ...], tuple[str, ...]]:
    """Return what of a tool's result is taken in, and for each of the rest a line that tells the model so."""
    kept: list[Media] = []
    told: list[str] = []
    room = min(limits.message, limits.session)
    for one in media:
        size = len(one.data)
        if size > limits.item:
            told.append(left_out(one, f"larger than {readable_size(limits.item)}"))
        elif size > room:
            told.append(left_out(one, "the result holds too much"))
        else:
            room -= size
            kept.append(one)
    return tuple(kept), tuple(told)


def shown_blocks(contents: Any, limits: MediaLimits) -> tuple[dict[str, Any], ...]:
    """Return a copy of blocks that a journal can write; nothing of what is larger than media may be, or is no JSON."""
    try:
        encoded = msgspec.json.encode(contents)
        if len(encoded) > limits.message:
            return ()
        return msgspec.json.decode(encoded, type=tuple[dict[str, Any], ...])
    except (TypeError, ValueError, RecursionError):
        return ()


def left_out(media: Media, why: str) -> str:
    """Return the line that the model reads in the place of media that it is not shown."""
    return f"[{media.kind} left out: {media}; {why}]"
