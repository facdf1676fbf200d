"""Only what a template wrote itself becomes a control token."""

from hypothesis import given
from hypothesis import strategies as st

from app.chat.division import Divider
from app.chat.markup import ControlTexts, Marker, Rendered, Span, TextPart
from engine.tokenizer import ControlToken

END = ControlToken(1, "<|im_end|>")
START = ControlToken(2, "<|im_start|>")
STRIPS = ControlToken(3, "<|sep|>", strips_left=True, strips_right=True)
CONTROLS = ControlTexts({token.text: token for token in (END, START, STRIPS)})


def marker(*texts: str) -> Marker:
    return Marker(CONTROLS, frozenset().union(*texts))


def divide(marks: Marker, marked: str) -> Rendered:
    return Divider().divide(marked, marks)


def test_a_control_text_in_a_content_stays_text() -> None:
    text = "a<|im_<|im_end|>end|>"
    marks = marker(text)
    assert divide(marks, f"<|im_start|>u {marks.protect(text)}<|im_end|>") == Rendered(
        (START, TextPart("u " + text, (Span(2, 2 + len(text)),)), END)
    )


def test_scaffold_and_content_never_join_to_a_control_token() -> None:
    marks = marker("|im_end|>", "<|im", "im_end")
    pieces = [marks.protect("|im_end|>"), marks.protect("<|im"), marks.protect("im_end")]
    rendered = divide(marks, f"<{pieces[0]} {pieces[1]}_end|> <|{pieces[2]}|>")
    assert [type(part) for part in rendered.parts] == [TextPart]
    assert rendered.text == "<|im_end|> <|im_end|> <|im_end|>"


def test_a_content_that_a_template_cut_or_changed_keeps_its_control_texts_apart() -> None:
    text = "one <|im_end|> two"
    marks = marker(text)
    protected = marks.protect(text)
    for piece in (protected[: len(protected) // 2 + 7], protected[3:], protected.upper()):
        assert all(isinstance(part, TextPart) for part in divide(marks, piece).parts)


def test_removing_text_from_a_content_makes_no_control_token() -> None:
    text = "<|im_/thinkend|>"
    marks = marker(text)
    rendered = divide(marks, marks.protect(text).replace("/think", ""))
    assert rendered == Rendered((TextPart("<|im_end|>", (Span(0, 10),)),))


def test_a_template_does_not_find_thinking_tags_that_are_talked_about() -> None:
    assert "</think>" not in marker().protect("Write </think> last.")


def test_white_space_at_the_edges_can_be_trimmed() -> None:
    marks = marker()
    assert divide(marks, marks.protect(" \n a b \n").strip()).text == "a b"
    assert marks.protect(" \n") == " \n"


def test_a_control_token_takes_the_white_space_that_belongs_to_it() -> None:
    marks = marker()
    rendered = divide(marks, f"x \n<|sep|>\n{marks.protect(' a ')}<|im_end|> ")
    assert rendered.parts == (
        TextPart("x"),
        STRIPS,
        TextPart("a ", (Span(0, 1),)),
        END,
        TextPart(" "),
    )


def test_moved_and_repeated_contents_are_found_again() -> None:
    marks = marker()
    first, second = marks.protect("aa", (1,)), marks.protect("b", (2,))
    (part,) = divide(marks, f"{second}-{first}-{first}").parts
    assert part == TextPart("b-aa-aa", (Span(0, 1, (2,)), Span(2, 4, (1,)), Span(5, 7, (1,))))


def test_marks_are_characters_that_nobody_wrote() -> None:
    noncharacters = "".join(map(chr, range(0xFDD0, 0xFDF0)))
    marks = marker(noncharacters)
    assert divide(marks, marks.protect(noncharacters)).text == noncharacters


@given(st.lists(st.sampled_from(["<", "<|", "im_end", "|>", "<|im_end|>", "\ufdd0", "a", " "])))
def test_any_content_comes_back_as_it_was(pieces: list[str]) -> None:
    text = "".join(pieces)
    marks = marker(text)
    rendered = divide(marks, "<|im_start|>" + marks.protect(text) + "<|im_end|>")
    assert [part for part in rendered.parts if isinstance(part, ControlToken)] == [START, END]
    assert rendered.text == f"<|im_start|>{text}<|im_end|>"
