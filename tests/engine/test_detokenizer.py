"""The detokenizer: however tokens cut a text, the same text comes out, and nothing after a stop."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.detokenizer import Detokenizer

FAMILY = "👩‍👩‍👧‍👦"

# One to four bytes each, with the first and the last of most lengths.
CHARACTERS = (
    "a \n\x00\x7f\x80é\u07ff\u0800中\ud7ff\ue000\ufffd\uffff\U00010000🙂\U0010ffff\u0301\u200d"
)


class PieceTokenizer:
    """Its tokens are the given pieces of bytes."""

    num_tokens = 0
    bos_id = None
    control_tokens = {}

    def __init__(self, pieces):
        self.pieces = pieces

    def encode(self, text):
        return [self.pieces.index(text.encode())]

    def token_bytes(self, token_id):
        return self.pieces[token_id]

    def is_end(self, token_id):
        return False


class Answer:
    """Everything that came out of one run over `pieces`."""

    def __init__(self, pieces, stop=()):
        detokenizer = Detokenizer(PieceTokenizer(pieces), tuple(stop))
        self.texts = [detokenizer.feed(token_id) for token_id in range(len(pieces))]
        self.stopped = detokenizer.stopped
        self.flushed = detokenizer.finish()
        self.text = "".join(self.texts) + self.flushed
        self.after_the_end = detokenizer.finish()


def cut(data, places):
    """`data` in pieces, cut at `places` (taken modulo its length)."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in zip(edges, edges[1:], strict=False)]


def one_by_one(text):
    data = text.encode() if isinstance(text, str) else text
    return [bytes([byte]) for byte in data]


def ended_slowly(text, stop):
    """`text` up to the stop text that is complete first, by trying every beginning of it."""
    for end in range(1, len(text) + 1):
        lengths = [len(word) for word in stop if text[:end].endswith(word)]
        if lengths:
            return text[: end - max(lengths)], True
    return text, False


places = st.lists(st.integers(0, 500), max_size=30)


@settings(deadline=None)
@given(text=st.text(CHARACTERS, max_size=60), places=places)
@example(text=FAMILY + " 中文 é \ufffd", places=list(range(60)))
def test_the_pieces_join_to_the_text_however_it_was_cut(text, places):
    answer = Answer(cut(text.encode(), places))
    assert answer.text == text
    assert answer.flushed == ""


@settings(deadline=None)
@given(data=st.binary(max_size=40), places=places)
def test_invalid_bytes_come_out_as_they_would_in_one_piece(data, places):
    whole = Answer([data]).text
    assert Answer(cut(data, places)).text == whole
    assert data.decode(errors="replace").startswith(whole)


@settings(max_examples=300, deadline=None)
@given(
    text=st.text("ab中", max_size=30),
    stop=st.lists(st.text("ab中", min_size=1, max_size=6), max_size=4),
    places=places,
)
def test_the_stop_text_that_is_complete_first_ends_the_answer(text, stop, places):
    answer = Answer(cut(text.encode(), places), stop)
    assert (answer.text, answer.stopped) == ended_slowly(text, stop)


@settings(deadline=None)
@given(
    text=st.text("ab", max_size=30),
    stop=st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=3),
)
def test_only_what_may_become_a_stop_text_is_held_back(text, stop):
    pieces = one_by_one(text)
    for end in range(1, len(pieces) + 1):
        answer = Answer(pieces[:end], stop)
        if answer.stopped:
            break
        beginnings = [word[:length] for word in stop for length in range(1, len(word))]
        longest = max((b for b in beginnings if text[:end].endswith(b)), key=len, default="")
        assert answer.flushed == longest


@pytest.mark.parametrize("text", [FAMILY, "한국어 текст", "🇪🇺🙂", "e\u0301"])
def test_no_replacement_character_comes_from_a_cut(text):
    assert not any("\ufffd" in piece for piece in Answer(one_by_one(text)).texts)


def test_a_replacement_character_that_the_model_wrote_is_text():
    assert Answer(one_by_one("a\ufffdb")).text == "a\ufffdb"


def test_an_invalid_byte_in_the_middle_is_replaced_once():
    assert Answer([b"a", b"\xe2\x82", b"b"]).text == "a\ufffdb"
    assert Answer([b"a\xffb"]).text == "a\ufffdb"


def test_half_a_character_at_the_end_is_dropped():
    answer = Answer([b"ok ", "🙂".encode()[:3]])
    assert (answer.text, answer.after_the_end) == ("ok ", "")


def test_text_is_given_at_once_when_nothing_can_stop_it():
    assert Answer([b"one ", b"two"]).texts == ["one ", "two"]


def test_a_beginning_of_a_stop_text_waits_and_is_given_when_it_was_none():
    assert Answer([b"a\n", b"Us", b"ing"], ["\nUser:"]).texts == ["a", "", "\nUsing"]


def test_what_was_held_back_comes_with_the_end():
    answer = Answer([b"hello ", b"EN"], ["END"])
    assert (answer.texts, answer.flushed, answer.stopped) == (["hello ", ""], "EN", False)
    assert answer.after_the_end == ""


def test_a_stop_text_across_tokens_is_found_and_nothing_follows():
    answer = Answer([b"yes<", b"|e", b"nd|>no", b"more"], ["<|end|>"])
    assert (answer.text, answer.stopped, answer.texts[-1]) == ("yes", True, "")


def test_a_stop_text_may_be_the_whole_answer():
    answer = Answer([b"STO", b"P"], ["STOP"])
    assert (answer.text, answer.stopped) == ("", True)


def test_a_stop_text_whose_last_character_came_in_halves_is_found():
    answer = Answer(one_by_one("fin 完 x"), ["完"])
    assert (answer.text, answer.stopped) == ("fin ", True)


def test_a_stop_text_that_lacks_half_a_character_is_none():
    answer = Answer(one_by_one("ab完".encode()[:-1]), ["b完"])
    assert (answer.text, answer.stopped) == ("ab", False)


def test_of_stop_texts_complete_together_the_longest_counts():
    assert Answer([b"one two"], ["two", "e two"]).text == "on"


def test_a_shorter_stop_text_inside_a_longer_one_ends_it_early():
    for pieces in ([b"xabcd"], one_by_one("xabcd")):
        assert Answer(pieces, ["abcd", "bc"]).text == "xa"


def test_a_stop_text_that_overlaps_its_own_beginning_is_found():
    assert Answer(one_by_one("xaabaabaaa"), ["aabaaa"]).text == "xaab"


def test_tokens_without_text_change_nothing():
    assert Answer([b"", b"a", b"", b"\xc3", b"", b"\xa9"], ["z"]).text == "aé"


def test_a_pattern_of_symbols_is_plain_text():
    stop = re.escape("a.b") + "[x]"
    assert Answer([b"1", stop.encode()], [stop]).text == "1"
