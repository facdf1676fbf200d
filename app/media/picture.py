"""Pictures from people's files. Only the reading process runs this: see `reading.py`."""

import io
import warnings
from collections.abc import Mapping

from PIL import Image, ImageOps, UnidentifiedImageError

from app.media.refusal import Refusal

LONGEST_SIDE = 2048
"""Larger pictures are made smaller: no model here looks at more."""
PREVIEW_SIDE = 512
MOST_PIXELS = 120_000_000
"""More would take more memory than the reading process may have."""
THINNEST = 100
"""No side may be so many times as long as the other."""
JPEG_QUALITY = 92
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
# Pillow imports its parts when it first needs them, and then this process can open no file.
Image.init()
_FAILURES = (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError)


def take_in(data: bytes) -> tuple[Mapping[str, object], bytes, bytes]:
    """The facts, the picture as it is kept, and a small one to show. Upright, without what a camera
    writes beside it, and no larger than `LONGEST_SIDE`. Raises Refusal."""
    picture, form = _opened(data)
    if form in ("JPEG", "MPO"):
        kept = _saved(picture, "JPEG", quality=JPEG_QUALITY)
        media_type = "image/jpeg"
    else:
        kept = _saved(picture, "PNG")
        media_type = "image/png"
    small = picture.copy()
    small.thumbnail((PREVIEW_SIDE, PREVIEW_SIDE))
    facts = {"media_type": media_type, "width": picture.width, "height": picture.height}
    return facts, kept, _saved(small, "JPEG", quality=80)


def pixels(data: bytes) -> bytes:
    """Of a picture as it is kept: three bytes each, row after row. Raises Refusal."""
    return _opened(data)[0].tobytes()


def _opened(data: bytes) -> tuple[Image.Image, str]:
    try:
        with warnings.catch_warnings():
            # What Pillow only warns of is checked below, by its size.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(data), formats=FORMATS)
        form = picture.format or ""
        _check_size(picture.width, picture.height)
        # A JPEG can be read smaller than it is, which saves most of the work.
        picture.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))
        upright = ImageOps.exif_transpose(picture)
        upright.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
        return flattened(upright), form
    except Image.DecompressionBombError as error:
        raise Refusal(f"it has more than {MOST_PIXELS:,} pixels") from error
    except UnidentifiedImageError as error:
        raise Refusal("it is no PNG, JPEG, WebP, GIF or BMP picture") from error
    except _FAILURES as error:
        raise Refusal(f"it is damaged ({_in_short(error)})") from error


def _check_size(width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise Refusal(f"it has {width * height:,} pixels, and at most {MOST_PIXELS:,} are read")
    if min(width, height) < 1 or max(width, height) > THINNEST * min(width, height):
        raise Refusal(f"{width:,} by {height:,} pixels are no shape that a model can look at")


def flattened(picture: Image.Image) -> Image.Image:
    """In three colours, on white where it can be seen through."""
    if picture.mode in ("I", "I;16", "F"):
        low, high = picture.getextrema()
        span = max(float(high) - float(low), 1.0)  # type: ignore[arg-type]
        picture = picture.point(lambda value: (value - low) * 255 / span).convert("L")
    if picture.has_transparency_data:
        seen = picture.convert("RGBA")
        ground = Image.new("RGBA", seen.size, "white")
        ground.alpha_composite(seen)
        picture = ground
    return picture.convert("RGB")


def _saved(picture: Image.Image, form: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def _in_short(error: BaseException) -> str:
    return " ".join(str(error).split())[:120].rstrip(".") or type(error).__name__
