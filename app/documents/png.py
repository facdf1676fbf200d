"""Pictures in PNG: written from plain pixels, and looked at before they are passed on."""

import struct
import zlib

MAGIC = b"\x89PNG\r\n\x1a\n"
END = b"\x00\x00\x00\x00IEND\xaeB`\x82"
EIGHT_BITS_OF_COLOR = (8, 2, 0, 0, 0)
_NO_FILTER = b"\0"


def png_of(pixels: memoryview, width: int, height: int, row_bytes: int) -> bytes:
    """Of pixels in red, green and blue; a row may be longer than its pixels."""
    packed = zlib.compressobj(6)
    data = bytearray()
    for row in range(height):
        start = row * row_bytes
        data += packed.compress(_NO_FILTER)
        data += packed.compress(pixels[start : start + 3 * width])
    data += packed.flush()
    head = struct.pack(">II5B", width, height, *EIGHT_BITS_OF_COLOR)
    return MAGIC + _chunk(b"IHDR", head) + _chunk(b"IDAT", bytes(data)) + END


def check_png(data: bytes, width: int, height: int) -> None:
    """Raises ValueError for what is no whole picture of this size."""
    expected = MAGIC + _chunk(b"IHDR", struct.pack(">II5B", width, height, *EIGHT_BITS_OF_COLOR))
    if not data.startswith(expected) or not data.endswith(END):
        raise ValueError("these bytes are no picture of this size")


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
