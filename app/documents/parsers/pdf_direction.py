"""Hebrew and Arabic of a PDF in the order in which they are read.

pdfium turns round what runs from right to left, since files place its letters as they stand on the
paper. It also turns round the letters that a single sign of the font stands for (a ligature, or a
whole word), though those are in reading order already. Letters of one sign have one origin, and
are turned back here.
"""

import re
import unicodedata
from collections.abc import Iterator
from ctypes import byref, c_double

import pypdfium2
import pypdfium2.raw as pdfium

RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
# What pdfium itself makes of one letter of Unicode, and makes in the right order.
RIGHT_ALREADY = re.compile("\u0644[\u0622\u0623\u0625\u0627\u0671]|\u0627\u0644\u0644\u0647")
# Where a font maps a sign to nothing its code is given, and 3 is the space of TrueType.
UNMAPPED_SPACE = "\x03"


def logical_text(text_page: pypdfium2.PdfTextPage) -> str:
    units = "".join(map(_turned, _signs(text_page)))
    text = units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace(UNMAPPED_SPACE, " ")


def _signs(text_page: pypdfium2.PdfTextPage) -> Iterator[str]:
    """Neighbours of the same origin, together."""
    x, y = c_double(), c_double()
    place_of_x, place_of_y = byref(x), byref(y)
    held, origin = "", (0.0, 0.0)
    for index in range(text_page.count_chars()):
        character = chr(pdfium.FPDFText_GetUnicode(text_page, index) & 0xFFFF)
        pdfium.FPDFText_GetCharOrigin(text_page, index, place_of_x, place_of_y)
        if held and (x.value, y.value) != origin:
            yield held
            held = ""
        held, origin = held + character, (x.value, y.value)
    if held:
        yield held


def _turned(sign: str) -> str:
    from_right = [place for place, character in enumerate(sign) if RIGHT_TO_LEFT.match(character)]
    if len(from_right) < 2:
        return sign
    first, last = from_right[0], from_right[-1] + 1
    letters = sign[first:last]
    marks = [character for character in letters if unicodedata.category(character) == "Mn"]
    if len(letters) - len(marks) == 1:
        # A letter and what stands above it, each a sign of its own.
        (base,) = set(letters) - set(marks)
        turned = base + "".join(marks)
    elif RIGHT_ALREADY.fullmatch(letters):
        turned = letters
    else:
        turned = letters[::-1]
    return sign[:first] + turned + sign[last:]
