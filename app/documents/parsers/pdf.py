"""PDF through pdfium: one page after the other, in the order in which its text was written.

pdfium takes one thread at a time only, and a file may crash it: it runs in the reading process.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import pypdfium2
import pypdfium2.raw as pdfium

from app.documents.cleaning import clean, one_line
from app.documents.document import Facts, FileState, Heading, Page, PageFlag, Unreadable
from app.documents.kinds import Kind
from app.documents.parsers.pdf_direction import RIGHT_TO_LEFT, logical_text
from app.documents.parsers.pdf_hidden import hidden_places
from app.documents.parsers.source import Source

GARBLED_SHARE = 0.15
"""Of characters that no font should give."""
LETTERS_TO_JUDGE = 80
LEAST_COMMON = 0.45
"""The share of `COMMON` among letters: 0.54 to 0.76 in what is written in Latin letters, 0.25 where
each letter stands for the third after it."""
COMMON = frozenset("aeilnorst")
MOST_OUTLINE = 20_000
LATIN = re.compile("[a-z]")

NO_TITLES = ("(anonymous)", "untitled", "anonymous")
"""What programs write where nobody gave a title."""
# After a raised or lowered sign pdfium begins a line.
TORN = re.compile(r"(?<=\S)\n(?=[)\],.;:])")

Outline = Mapping[int, list[tuple[int, str]]]


def read(source: Source) -> Iterator[Page | Facts]:
    document = opened(source)
    try:
        title = one_line(document.get_metadata_value("Title"))
        title = "" if title.lower() in NO_TITLES else title
        num_pages = len(document)
        yield Facts(kind=Kind.PDF, num_pages=num_pages, title=title)
        outline = _outline(document)
        path: list[tuple[int, str]] = []
        failed = 0
        for index in range(num_pages):
            label = document.get_page_label(index) or str(index + 1)
            try:
                text, flags = _page(document, index)
            except pypdfium2.PdfiumError:
                text, flags, failed = "", frozenset[PageFlag](), failed + 1
            headings = _headings(text, outline.get(index, []), path)
            yield Page(
                number=index + 1,
                label=one_line(label) or str(index + 1),
                text=text,
                headings=headings,
                flags=flags,
            )
        pages = "page is" if failed == 1 else "pages are"
        notice = f"{failed} {pages} damaged and could not be read." if failed else ""
        yield Facts(kind=Kind.PDF, num_pages=num_pages, title=title, notice=notice)
    finally:
        document.close()


def opened(source: Source) -> pypdfium2.PdfDocument:
    """Raises Unreadable."""
    try:
        return pypdfium2.PdfDocument(source.data, password=source.password or None)
    except pypdfium2.PdfiumError as error:
        raise _why_not(source, error.err_code) from error


def _why_not(source: Source, code: int | None) -> Unreadable:
    name = source.name
    if code == pdfium.FPDF_ERR_PASSWORD:
        if source.password:
            sentence = f"{name} is protected by a password, and the one given does not open it."
        else:
            sentence = f"{name} is protected by a password: type it to have the file opened."
        return Unreadable(FileState.NEEDS_PASSWORD, sentence)
    if code == pdfium.FPDF_ERR_SECURITY:
        return Unreadable(
            FileState.UNSUPPORTED,
            f"{name} is protected in a way that only the program of its maker can open.",
        )
    return Unreadable(
        FileState.DAMAGED,
        f"{name} is damaged and its pages cannot be found: copy or download it again.",
    )


def _page(document: pypdfium2.PdfDocument, index: int) -> tuple[str, frozenset[PageFlag]]:
    page = document[index]
    try:
        text_page = page.get_textpage()
        try:
            raw = text_page.get_text_range()
            hidden = hidden_places(page, text_page)
            if hidden:
                raw = "".join(
                    text_page.get_text_range(start, count) for start, count in hidden.visible
                )
            elif RIGHT_TO_LEFT.search(raw):
                raw = logical_text(text_page)
        finally:
            text_page.close()
        text = TORN.sub("", clean(raw))
        flags = set()
        if hidden:
            flags.add(PageFlag.HIDDEN_LEFT_OUT)
        if is_garbled(text):
            flags.add(PageFlag.GARBLED)
        if not text and _has_picture(page):
            flags.add(PageFlag.PICTURE_ONLY)
        return text, frozenset(flags)
    finally:
        page.close()


def _has_picture(page: pypdfium2.PdfPage) -> bool:
    return any(True for _ in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=3))


def is_garbled(text: str) -> bool:
    """Whether its letters make no words, so that it can be neither found nor understood."""
    # A page has thousands of characters, and less than a hundred different ones.
    shown = {each: num for each, num in Counter(text).items() if not each.isspace()}
    num_shown = sum(shown.values())
    if not num_shown:
        return False
    strange = sum(
        num
        for character, num in shown.items()
        if character == "\ufffd" or unicodedata.category(character) in ("Co", "Cn")
    )
    if strange > GARBLED_SHARE * num_shown:
        return True
    letters = Counter[str]()
    for character, num in shown.items():
        for letter in LATIN.findall(unicodedata.normalize("NFD", character.lower())):
            letters[letter] += num
    # Tables of codes and figures are no prose; there this says nothing.
    if letters.total() < max(LETTERS_TO_JUDGE, 0.5 * num_shown):
        return False
    return sum(letters[letter] for letter in COMMON) < LEAST_COMMON * letters.total()


def _outline(document: pypdfium2.PdfDocument) -> Outline:
    """What the file itself names as its chapters, by page."""
    found: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    try:
        for number, mark in enumerate(document.get_toc(max_depth=6)):
            if number >= MOST_OUTLINE:
                break
            target = mark.get_dest()
            index = target.get_index() if target else None
            if index is not None and (title := one_line(mark.get_title())):
                found[index].append((mark.level + 1, title))
    except pypdfium2.PdfiumError:
        found.clear()
    return found


def _headings(
    text: str, marks: list[tuple[int, str]], path: list[tuple[int, str]]
) -> tuple[Heading, ...]:
    """`path` is what is open at the top of the page, and is brought up to its end."""
    found = [Heading(start=0, path=tuple(name for _, name in path))] if path and text else []
    start = 0
    for level, title in marks:
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, title))
        # In a page a title may be broken into lines.
        words = r"\s+".join(map(re.escape, title.split()))
        match = re.compile(words, re.IGNORECASE).search(text, start)
        start = match.start() if match else start
        found.append(Heading(start=start, path=tuple(name for _, name in path)))
    return tuple(found)
