"""Office files made for tests: just the parts that a reader looks for, written by hand."""

import io
import zipfile
from collections.abc import Mapping

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"
NAMESPACES = " ".join(
    f'xmlns:{name}="{OFFICE}{name}:1.0"' for name in ("office", "text", "table", "style", "meta")
)
DRAW = f'xmlns:draw="{OFFICE}drawing:1.0" xmlns:presentation="{OFFICE}presentation:1.0"'


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def relations(targets: Mapping[str, tuple[str, str]], outside: str = "") -> str:
    """By id the kind and the target; `outside` is an address that a picture is linked to."""
    lines = [
        f'<Relationship Id="{name}" Type="{R}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    ]
    if outside:
        lines.append(
            f'<Relationship Id="out" Type="{R}/image" Target="{outside}" TargetMode="External"/>'
        )
    return f'<Relationships xmlns="{PACKAGE}">{"".join(lines)}</Relationships>'


def docx(body: str, more: Mapping[str, str] | None = None, outside: str = "") -> bytes:
    """`more` are further parts of `word/`, by their kind: "styles", "footnotes", ..."""
    more = more or {}
    links = {f"r{number}": (kind, f"{kind}.xml") for number, kind in enumerate(more)}
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations({"r1": ("officeDocument", "word/document.xml")}),
            "word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
            "word/_rels/document.xml.rels": relations(links, outside),
            **{
                f"word/{kind}.xml": f'<w:{kind} xmlns:w="{W}">{content}</w:{kind}>'
                for kind, content in more.items()
            },
        }
    )


def paragraph(*runs: str, style: str = "") -> str:
    """Runs are texts, or XML where they begin with "<"."""
    given = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    made = (run if run.startswith("<") else f"<w:r><w:t>{run}</w:t></w:r>" for run in runs)
    return f"<w:p>{given}{''.join(made)}</w:p>"


def run(text: str, properties: str) -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


def word_table(*rows: tuple[str, ...], properties: str = "") -> str:
    made = (
        "<w:tr>" + "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) + "</w:tr>"
        for row in rows
    )
    return f"<w:tbl>{properties}{''.join(made)}</w:tbl>"


def pptx(slides: list[str], notes: Mapping[int, str] | None = None) -> bytes:
    """Shapes of each slide, from "show=0" on one that is hidden; notes by the slide's number."""
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{P}" xmlns:r="{R}"><p:sldIdLst>'
        + "".join(f'<p:sldId id="{255 + n}" r:id="s{n}"/>' for n in range(1, len(slides) + 1))
        + "</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            {f"s{n}": ("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)}
        ),
    }
    for number, shapes in enumerate(slides, start=1):
        show = ' show="0"' if shapes.startswith("hidden") else ""
        members[f"ppt/slides/slide{number}.xml"] = _shapes(
            "sld", shapes.removeprefix("hidden"), show
        )
        if text := (notes or {}).get(number):
            members[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(
                {"n": ("notesSlide", f"../notesSlides/notes{number}.xml")}
            )
            members[f"ppt/notesSlides/notes{number}.xml"] = _shapes("notes", shape(text))
    return zipped(members)


def _shapes(kind: str, shapes: str, more: str = "") -> str:
    return (
        f'<p:{kind} xmlns:p="{P}" xmlns:a="{A}"{more}><p:cSld><p:spTree>{shapes}</p:spTree>'
        f"</p:cSld></p:{kind}>"
    )


def shape(text: str, role: str = "body", hidden: bool = False) -> str:
    lines = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    switch = ' hidden="1"' if hidden else ""
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="x"{switch}/><p:nvPr><p:ph type="{role}"/></p:nvPr>'
        f"</p:nvSpPr><p:txBody>{lines}</p:txBody></p:sp>"
    )


def xlsx(
    sheets: Mapping[str, str],
    texts: tuple[str, ...] = (),
    formats: tuple[str, ...] = (),
    hidden: tuple[str, ...] = (),
) -> bytes:
    """The content of `sheetData` by the name of the sheet. Style 1 has the first format."""
    names = list(sheets)
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="s{n}"'
        + (' state="hidden"' if name in hidden else "")
        + "/>"
        for n, name in enumerate(names, start=1)
    )
    links = {f"s{n}": ("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(names) + 1)}
    links |= {"t": ("sharedStrings", "sharedStrings.xml"), "y": ("styles", "styles.xml")}
    coded = "".join(
        f'<numFmt numFmtId="{200 + n}" formatCode="{code}"/>' for n, code in enumerate(formats)
    )
    styled = "".join(f'<xf numFmtId="{200 + n}"/>' for n in range(len(formats)))
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "xl/workbook.xml": f'<workbook xmlns="{S}" xmlns:r="{R}"><sheets>{listed}</sheets>'
            "</workbook>",
            "xl/_rels/workbook.xml.rels": relations(links),
            "xl/sharedStrings.xml": f'<sst xmlns="{S}">'
            + "".join(f"<si><t>{text}</t></si>" for text in texts)
            + "</sst>",
            "xl/styles.xml": f'<styleSheet xmlns="{S}"><numFmts>{coded}</numFmts>'
            f'<cellXfs><xf numFmtId="0"/>{styled}</cellXfs></styleSheet>',
            **{
                f"xl/worksheets/sheet{n}.xml": f'<worksheet xmlns="{S}"><dimension ref="A1:Z99"/>'
                f"<sheetData>{sheets[name]}</sheetData></worksheet>"
                for n, name in enumerate(names, start=1)
            },
        }
    )


def opendocument(kind: str, body: str, styles: str = "", manifest: str = "") -> bytes:
    """`kind` is text, spreadsheet or presentation."""
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    return zipped(
        {
            "mimetype": media_type,
            "content.xml": f"<office:document-content {NAMESPACES} {DRAW}>"
            f"<office:automatic-styles>{styles}</office:automatic-styles>"
            f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
            "</office:document-content>",
            "META-INF/manifest.xml": f"<manifest>{manifest}</manifest>",
        }
    )


def epub(
    chapters: Mapping[str, str], spine: tuple[str, ...], more: Mapping[str, str] | None = None
) -> bytes:
    """Pages of XHTML by their names, and the order in which they are read."""
    items = "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"'
        + (' properties="nav"' if name == "nav" else "")
        + "/>"
        for name in chapters
    )
    order = "".join(f'<itemref idref="{name}"/>' for name in spine)
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/>'
            "</rootfiles></container>",
            "OPS/book.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            f"<dc:title>A Book</dc:title></metadata><manifest>{items}</manifest>"
            f"<spine>{order}</spine></package>",
            **{
                f"OPS/{name}.xhtml": f"<html><head/><body>{body}</body></html>"
                for name, body in chapters.items()
            },
            **(more or {}),
        }
    )
