"""Web pages: their text in its order, without what a browser does not show. Nothing is fetched."""

import re
from collections.abc import Iterator

from app.documents.blocks import Block, paginate
from app.documents.cleaning import one_line
from app.documents.document import Facts, Page
from app.documents.encoding import decode
from app.documents.kinds import Kind
from app.documents.markup import Element, child, local, page_tree
from app.documents.parsers.source import Source
from app.documents.tables import simple_lines

NO_TEXT = (
    "script",
    "style",
    "template",
    "noscript",
    "head",
    "title",
    "svg",
    "math",
    "iframe",
    "object",
    "embed",
    "canvas",
    "audio",
    "video",
    "select",
    "datalist",
)
HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = (
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset"
    " figcaption figure footer form header hr html legend li main nav ol p pre section summary"
    " table tbody td tfoot th thead tr ul"
)
BLOCKS = frozenset(_BLOCKS.split())
UNSEEN_STYLE = re.compile(
    r"display:none|visibility:(hidden|collapse)|font-size:0(?![.\d])|opacity:0(\.0+)?(?![.\d])"
    r"|(?<![-\w])color:(transparent|rgba\([^)]*,0\))|text-indent:-\d{4,}"
    r"|(?<![-\w])(left|top|right):-\d{4,}|(?<![-\w])(width|height):0(px)?(;|$)"
)
WHITE = re.compile(r"(?<![-\w])color:(white|#fff(fff)?(ff)?|rgba?\(255,255,255(,1)?\))(;|!|$)")
GROUND = re.compile(r"background")
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
SIMPLE_SELECTOR = re.compile(r"^[a-z]*([.#])([\w-]+)$", re.IGNORECASE)
DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w-]+)", re.IGNORECASE)


def read(source: Source) -> Iterator[Page | Facts]:
    text = text_of(source.data, source.encoding)
    title = ""
    if (root := page_tree(text, source.name)) is not None:
        found = child(root, "head", "title")
        title = one_line(found.text or "") if found is not None else ""
        yield from paginate(blocks(root), "Paragraph")
    yield Facts(kind=Kind.HTML, num_pages=0, title=title)


def text_of(data: bytes, found: str) -> str:
    """By its mark or as UTF-8 if it is that, else as the page says of itself."""
    declared = DECLARED.search(data[:4096])
    if found.startswith("utf") or declared is None:
        return decode(data, found)
    return decode(data, declared[1].decode("ascii", "replace"))


def blocks(root: Element) -> Iterator[Block]:
    walk = _Walk(_unseen_by_rule(root))
    yield from walk.into(root)
    yield from walk.flush()


def _unseen_by_rule(root: Element) -> frozenset[str]:
    """The `.class` and `#id` that a style sheet in the page hides."""
    found = set()
    for sheet in root.iter("style"):
        for selectors, rules in RULE.findall(sheet.text or ""):
            if UNSEEN_STYLE.search(_plain(rules)):
                simple = (SIMPLE_SELECTOR.match(each.strip()) for each in selectors.split(","))
                found |= {each[1] + each[2] for each in simple if each}
    return frozenset(found)


def _plain(style: str) -> str:
    return re.sub(r"\s+", "", style.lower())


class _Walk:
    """Down the tree of one page. Owned by `blocks`."""

    def __init__(self, unseen: frozenset[str]) -> None:
        self._unseen = unseen
        self._pieces: list[str] = []
        self._level = 0
        self._listed = False
        self._hides = False

    def flush(self) -> Iterator[Block]:
        """What was gathered, as a block."""
        text = "".join(self._pieces)
        if text.strip() or self._hides:
            shown = "\n".join(" ".join(line.split()) for line in text.split("\n")).strip()
            if self._listed and shown:
                shown = f"- {shown}"
            level = self._level if shown else 0
            yield Block(text=shown, level=level, follows=self._listed, hides=self._hides)
        self._pieces, self._hides, self._listed = [], False, False

    def into(self, element: Element) -> Iterator[Block]:
        name = local(element).lower()
        if not name or name in NO_TEXT:
            return
        if self._is_unseen(element):
            self._hides = self._hides or any(text.strip() for text in element.itertext())
            return
        if name == "table" and _is_data(element):
            yield from self.flush()
            yield from self._table(element)
            return
        if name == "pre":
            yield from self.flush()
            yield Block(text="".join(element.itertext()))
            return
        is_block = name in BLOCKS or name in HEADINGS
        if is_block:
            yield from self.flush()
            self._listed = name == "li"
            self._level = HEADINGS.get(name, 0)
        yield from self._inside(element, name)
        if is_block:
            yield from self.flush()
            self._level = 0

    def _inside(self, element: Element, name: str) -> Iterator[Block]:
        if name == "br":
            self._pieces.append("\n")
        self._pieces.append(_flowing(element.text))
        for each in element:
            yield from self.into(each)
            self._pieces.append(_flowing(each.tail))

    def _is_unseen(self, element: Element) -> bool:
        if "hidden" in element.attrib or element.get("type") == "hidden":
            return True
        style = _plain(element.get("style") or "")
        if style and UNSEEN_STYLE.search(style):
            return True
        if style and WHITE.search(style) and not GROUND.search(style):
            return not any(
                GROUND.search(_plain(above.get("style") or "")) or above.get("bgcolor")
                for above in element.iterancestors()
            )
        names = [f".{each}" for each in (element.get("class") or "").split()]
        return not self._unseen.isdisjoint([*names, f"#{element.get('id') or ''}"])

    def _table(self, table: Element) -> Iterator[Block]:
        rows: list[list[str]] = []
        has_names, hides = False, False
        for row in table.iter("tr"):
            if self._is_unseen(row):
                hides = True
                continue
            cells = [each for each in row if local(each) in ("td", "th")]
            has_names = (
                has_names or not rows and bool(cells) and all(local(each) == "th" for each in cells)
            )
            found = []
            for cell in cells:
                inner = _Walk(self._unseen)
                got = [*inner.into(cell), *inner.flush()]
                hides = hides or any(block.hides for block in got)
                found.append(" ".join(block.text for block in got))
            rows.append(found)
        for number, line in enumerate(simple_lines(rows, has_names)):
            yield Block(text=line, follows=number > 0, hides=hides and number == 0)


def _flowing(text: str | None) -> str:
    """Line ends of the source are spaces; only `br` ends a line."""
    return re.sub(r"\s+", " ", text or "")


def _is_data(table: Element) -> bool:
    """Tables that only place things on the page hold tables or headings themselves."""
    return not any(True for _ in table.iterdescendants("table", *HEADINGS))
