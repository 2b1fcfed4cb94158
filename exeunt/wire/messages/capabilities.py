"""What a client knows of a model better than its server."""

import attrs


@attrs.frozen(kw_only=True)
class Supports:
    """What a model can do. `None`: nothing is said."""

    vision: bool | None = None


@attrs.frozen(kw_only=True)
class VisionLimits:
    """Which images it takes."""

    supported_media_types: list[str] | None = None
    max_prompt_images: int | None = None
    max_prompt_image_size: int | None = None
    """Bytes."""


@attrs.frozen(kw_only=True)
class CapabilityLimits:
    """How much it takes."""

    max_prompt_tokens: int | None = None
    vision: VisionLimits | None = None


@attrs.frozen(kw_only=True)
class ModelCapabilities:
    """What the client says of a model. What else it says is of no use here, and ignored."""

    supports: Supports | None = None
    limits: CapabilityLimits | None = None
