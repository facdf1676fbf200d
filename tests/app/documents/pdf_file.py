"""PDF files made for tests: objects written by hand, so that each says just what a test needs."""

import hashlib
from collections.abc import Mapping, Sequence

PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
FILE_ID = b"0123456789abcdef"


class PdfFile:
    """Objects by number; number 1 is the catalogue and 2 the list of pages. With a password, every
    stream is encrypted (RC4, 40 bits, the oldest way)."""

    def __init__(self, password: str = "") -> None:
        self._objects: list[bytes] = [b"", b""]
        self._pages: list[int] = []
        self._trailer = b""
        self._key = b""
        self.catalog = b""
        if password:
            self._lock(password.encode())
        self.font = self.add(
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
        )

    def add(self, body: bytes) -> int:
        self._objects.append(body)
        return len(self._objects)

    def stream(self, data: bytes, head: bytes = b"") -> int:
        if self._key:
            number = len(self._objects) + 1
            salted = self._key + number.to_bytes(3, "little") + b"\0\0"
            data = rc4(hashlib.md5(salted).digest()[:10], data)
        return self.add(b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), head, data))

    def page(
        self,
        content: bytes,
        *,
        font: int | None = None,
        extra: bytes = b"",
        resources: bytes = b"",
    ) -> int:
        drawn = self.stream(content)
        number = self.add(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 %d 0 R>>%s>>"
            b"/Contents %d 0 R%s>>" % (font or self.font, resources, drawn, extra)
        )
        self._pages.append(number)
        return number

    def picture_page(self, content: bytes = b"") -> int:
        """A picture of 8 times 8 grey points over the whole page."""
        picture = self.stream(
            bytes(64),
            b"/Type/XObject/Subtype/Image/Width 8/Height 8/ColorSpace/DeviceGray"
            b"/BitsPerComponent 8",
        )
        return self.page(
            b"q 612 0 0 792 0 0 cm /Im1 Do Q " + content,
            resources=b"/XObject<</Im1 %d 0 R>>" % picture,
        )

    def data(self) -> bytes:
        self._objects[0] = b"<</Type/Catalog/Pages 2 0 R%s>>" % self.catalog
        kids = b" ".join(b"%d 0 R" % page for page in self._pages)
        self._objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(self._pages))
        out, places = bytearray(b"%PDF-1.7\n"), []
        for number, body in enumerate(self._objects, start=1):
            places.append(len(out))
            out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
        start = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
        out += b"".join(b"%010d 00000 n \n" % place for place in places)
        out += b"trailer<</Size %d/Root 1 0 R%s>>\n" % (len(places) + 1, self._trailer)
        return bytes(out + b"startxref\n%d\n%%%%EOF" % start)

    def _lock(self, password: bytes) -> None:
        padded = (password + PADDING)[:32]
        owner = rc4(hashlib.md5(padded).digest()[:5], padded)
        rights = (-44).to_bytes(4, "little", signed=True)
        self._key = hashlib.md5(padded + owner + rights + FILE_ID).digest()[:5]
        number = self.add(
            b"<</Filter/Standard/V 1/R 2/O<%s>/U<%s>/P -44>>"
            % (owner.hex().encode(), rc4(self._key, PADDING).hex().encode())
        )
        file_id = FILE_ID.hex().encode()
        self._trailer = b"/Encrypt %d 0 R/ID[<%s><%s>]" % (number, file_id, file_id)


def rc4(key: bytes, data: bytes) -> bytes:
    state, other = list(range(256)), 0
    for place in range(256):
        other = (other + state[place] + key[place % len(key)]) % 256
        state[place], state[other] = state[other], state[place]
    place = other = 0
    out = bytearray()
    for byte in data:
        place = (place + 1) % 256
        other = (other + state[place]) % 256
        state[place], state[other] = state[other], state[place]
        out.append(byte ^ state[(state[place] + state[other]) % 256])
    return bytes(out)


def shown(text: str, x: float, y: float, size: float = 12, font: str = "F1") -> bytes:
    """Drawn at a place, in points from the lower left corner."""
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("cp1252")
    return b"BT /%s %g Tf %g %g Td (%s) Tj ET\n" % (font.encode(), size, x, y, escaped)


def pdf_of(pages: Sequence[Sequence[str]], password: str = "") -> bytes:
    """Lines of each page, from the top."""
    file = PdfFile(password)
    for lines in pages:
        file.page(b"".join(shown(line, 72, 720 - 14 * row) for row, line in enumerate(lines)))
    return file.data()


def mapped_font(file: PdfFile, meanings: Mapping[int, str]) -> int:
    """A font of codes of one byte, each 0.6 wide, whose map to characters says `meanings`."""
    lines = b"".join(
        b"<%02x> <%s>\n" % (code, text.encode("utf-16-be").hex().encode())
        for code, text in meanings.items()
    )
    to_unicode = file.stream(
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /M def"
        b" 1 begincodespacerange <00> <ff> endcodespacerange\n"
        b"%d beginbfchar\n%sendbfchar endcmap end end" % (len(meanings), lines)
    )
    return file.add(
        b"<</Type/Font/Subtype/TrueType/BaseFont/Any/FirstChar 0/LastChar 255/Widths[%s]"
        b"/ToUnicode %d 0 R>>" % (b" ".join([b"600"] * 256), to_unicode)
    )
