"""A picture or a sound as JSON that may be foreign."""

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from app.history.rows import storable
from app.media.attachment import Attachment
from app.media.reading import LARGEST, MEDIA_TYPES
from engine.media import MediaKind


def attachment_as_json(value: Attachment) -> dict[str, Any]:
    return {
        "kind": value.kind.value,
        "name": value.name,
        "media_type": value.media_type,
        "width": value.width,
        "height": value.height,
        "preview": base64.b64encode(value.preview).decode(),
        "content": base64.b64encode(value.read()).decode(),
    }


def attachment_from_json(found: object) -> Attachment:
    """Whether the content is what it says is found out when it is read, by the process that may
    die of it. Raises ValueError."""
    if not isinstance(found, Mapping):
        raise ValueError("an attachment is not an object")
    try:
        kind = MediaKind(found.get("kind"))
    except ValueError:
        raise ValueError("an attachment is neither image nor audio") from None
    media_type, name = found.get("media_type"), found.get("name", "")
    if media_type not in MEDIA_TYPES[kind] or not isinstance(name, str):
        raise ValueError("an attachment has a type that is not kept here")
    width, height = found.get("width"), found.get("height")
    if type(width) is not int or type(height) is not int or width < 1 or height < 1:
        raise ValueError("an attachment has no size")
    if width * height > LARGEST:
        raise ValueError(f"an attachment has {width * height:,} places")
    content, preview = _bytes(found, "content"), _bytes(found, "preview")
    if not content:
        raise ValueError("an attachment is empty")
    return Attachment(
        kind=kind,
        name=storable(name),
        media_type=str(media_type),
        width=width,
        height=height,
        digest=hashlib.sha256(content).hexdigest(),
        preview=preview,
        read=lambda: content,
    )


def _bytes(found: Mapping[str, Any], key: str) -> bytes:
    value = found.get(key, "")
    if not isinstance(value, str) or len(value) > 2 * LARGEST:
        raise ValueError(f"the {key} of an attachment is not a text in base64")
    return base64.b64decode(value, validate=True)
