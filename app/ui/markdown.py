"""A model's text as markdown with nothing in it that loads, asks or hides."""

import re
from functools import partial
from urllib.parse import urlsplit

from app.ui.fences import parts
from app.ui.verbatim import protect, show_verbatim

SPECIAL = re.compile(
    r"""
      (?P<escaped>\\[\\`])
    | (?P<escaped_angle>\\<)
    | (?P<definition>\[(?=(?:\\[\s\S]|[^\[\]\\])+(?:\]:|\Z)))
    | (?P<code>(?<!`)(?P<ticks>`+)(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`))
    | (?P<maths>\$\$[\s\S]+?\$\$|\\\([\s\S]+?\\\)|\\\[[\s\S]+?\\\])
    | (?P<link><https?://[^\s<>]+>)
    | (?P<image>!\[[^\]\n]*\]\([ \t]*<?(?P<url>[^\s<>)]*)[^)\n]*\))
    | (?P<bang>!(?=\[))
    | (?P<angle><)
    | (?P<target>\](?=[(\[:]))
    | (?P<address>(?i:https?|ftp)(?=://)|(?i:www)(?=\.)|@)
    """,
    re.VERBOSE | re.MULTILINE,
)
# What the page makes a link of without being told.
ADDRESS = re.compile(r"(?:https?|ftp)://|www\.|@", re.IGNORECASE)

DIAGRAM = re.compile(r"[^\n]*?[`~]{3,}[ \t]*mermaid", re.IGNORECASE)
# No arrow of a diagram goes on like this.
TAG = re.compile(r"<(?=[A-Za-z/!?])")

SPAN = re.compile(r"(?<![`\\])(?P<ticks>`+)(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`)")
NO_SPAN_AFTER = re.compile(r"(?:(?:://|www\.)\S*|~)\Z", re.IGNORECASE)
FORMULA_EDGE = re.compile(r"\$\$|\\[()\[\]]")
TABLE = re.compile(r"^[ \t>|:]*-[ \t|:-]*$", re.MULTILINE)


def show_answer(text: str, *, has_links: bool = True) -> str:
    """Markdown with nothing in it that loads, asks or hides: tags are shown, images are named.

    Without `has_links` nothing in it leads anywhere either: it may say what a stranger's file says.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        _code(part.text, has_links)
        if part.is_code
        else SPECIAL.sub(partial(_defuse, has_links=has_links), part.text)
        for part in parts(text)
    )


def _code(text: str, has_links: bool) -> str:
    """As it is; but a diagram would make elements of the tags in its labels, and has links."""
    diagram = DIAGRAM.match(text)
    if diagram is None:
        return text
    if has_links:
        return TAG.sub("#lt;", text)
    return diagram[0][: -len("mermaid")] + "text" + text[diagram.end() :]


def _defuse(match: re.Match[str], has_links: bool) -> str:
    match match.lastgroup:
        case "code" if _is_doubtful(match, has_links):
            shown = match[0].replace("<", protect("<")).replace("![", protect("!") + "[")
            return shown if has_links else _apart(shown)
        case "escaped_angle":
            return protect("<")
        case "maths":
            shown = match[0].replace("<", r"\lt ")
            return shown if has_links else _apart(shown)
        case "image":
            return show_verbatim(f"[image blocked: {_host(match['url'])}]")
        case "bang" | "angle" | "definition":
            return protect(match[0])
        case "link" if not has_links:
            return show_verbatim(match[0])
        case "address" | "target" if not has_links:
            return protect(match[0])
        case _:
            return match[0]


def _apart(text: str) -> str:
    """Without addresses, where an entity would be shown as it is spelled."""
    return ADDRESS.sub(lambda address: f"{address[0]} ", text)


def _is_doubtful(code: re.Match[str], has_links: bool) -> bool:
    """Whether a tick or bar elsewhere in the paragraph may make this something else than code."""
    text, start = code.string, code.start()
    leads = not has_links and ADDRESS.search(code[0]) is not None
    if "<" not in code[0] and "![" not in code[0] and not leads:
        return False
    begun = text.rfind("\n\n", 0, start) + 1
    before = text[begun:start]
    if "](" in before or "`" in SPAN.sub("", before) or NO_SPAN_AFTER.search(before):
        return True
    if FORMULA_EDGE.search(code[0]):
        return True
    ended = text.find("\n\n", start)
    paragraph = text[begun : ended if ended >= 0 else len(text)]
    return "|" in code[0] and TABLE.search(paragraph) is not None


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "no address"
    except ValueError:
        return "no address"


def closed(markdown: str) -> str:
    """`markdown` with its last fence closed, so that what follows is not code."""
    return markdown + "".join(part.to_close for part in parts(markdown))
