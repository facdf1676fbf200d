"""The kinds of files that are read, and by which endings people know them."""

from enum import StrEnum


class Kind(StrEnum):
    """What a file is by its content."""

    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    ODT = "odt"
    ODS = "ods"
    ODP = "odp"
    EPUB = "epub"
    RTF = "rtf"
    HTML = "html"
    MARKDOWN = "md"
    CSV = "csv"
    EML = "eml"
    NOTEBOOK = "ipynb"
    CODE = "code"
    TEXT = "txt"
    PICTURE = "picture"


ENDINGS: dict[str, Kind] = {
    **{f".{kind}": kind for kind in Kind if kind not in (Kind.CODE, Kind.PICTURE)},
    **dict.fromkeys(
        (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp", ".gif"), Kind.PICTURE
    ),
    ".docm": Kind.DOCX,
    ".dotx": Kind.DOCX,
    ".pptm": Kind.PPTX,
    ".ppsx": Kind.PPTX,
    ".xlsm": Kind.XLSX,
    ".xltx": Kind.XLSX,
    ".ott": Kind.ODT,
    ".ots": Kind.ODS,
    ".htm": Kind.HTML,
    ".xhtml": Kind.HTML,
    ".markdown": Kind.MARKDOWN,
    ".tsv": Kind.CSV,
    ".tab": Kind.CSV,
    ".log": Kind.TEXT,
    ".text": Kind.TEXT,
}

_CODE = (
    ".asm .bash .bat .c .cc .cfg .clj .cmake .cmd .conf .cpp .cs .css .cu .d .dart .diff .el .ex"
    " .exs .f90 .fs .go .gradle .graphql .h .hpp .hs .ini .java .jl .js .json .jsonl .jsx .kt .lisp"
    " .lua .m .ml .mm .nim .nix .patch .php .pl .properties .proto .ps1 .py .pyi .r .rb .rs .sass"
    " .scala .scss .sh .sql .svelte .swift .tcl .tex .tf .toml .ts .tsx .vb .vim .vue .xml .yaml"
    " .yml .zig .zsh"
)
CODE_ENDINGS = frozenset(_CODE.split())

NAMES: dict[Kind, str] = {
    Kind.PDF: "PDF",
    Kind.DOCX: "Word document",
    Kind.PPTX: "PowerPoint presentation",
    Kind.XLSX: "Excel workbook",
    Kind.ODT: "OpenDocument text",
    Kind.ODS: "OpenDocument spreadsheet",
    Kind.ODP: "OpenDocument presentation",
    Kind.EPUB: "EPUB book",
    Kind.RTF: "RTF text",
    Kind.HTML: "web page",
    Kind.MARKDOWN: "Markdown text",
    Kind.CSV: "table in CSV",
    Kind.EML: "mail",
    Kind.NOTEBOOK: "notebook",
    Kind.CODE: "program text",
    Kind.TEXT: "text",
    Kind.PICTURE: "picture",
}
"""How a sentence calls each."""


DRAWN = (Kind.PDF, Kind.PICTURE)
"""Those whose pages have a look of their own, which can be shown, and read by OCR."""


def one_of(kind: Kind) -> str:
    """The same with its article."""
    name = NAMES[kind]
    if kind is Kind.CODE:
        return name
    # As it is spoken: the letters of RTF begin with one too.
    return f"an {name}" if name[0] in "EO" or kind is Kind.RTF else f"a {name}"


def kind_of_ending(ending: str) -> Kind | None:
    """What an ending such as ".docx" promises. None: nothing that is read."""
    ending = ending.lower()
    return Kind.CODE if ending in CODE_ENDINGS else ENDINGS.get(ending)
