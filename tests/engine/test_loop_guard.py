"""The loop guard: it ends what would never end, and leaves alone what only repeats a while."""

import random
import re

import pytest

from engine.loop_guard import CHECK_EVERY, MAX_BLOCK, MIN_REPEATS, MIN_TOKENS, LoopGuard, is_loop


def tokens_of(text):
    """Ids of words, single digits, single signs and runs of spaces: finer than real ones."""
    pieces = re.findall(r"\d| *[^\W\d]+| +|.|\n", text)
    ids = {piece: 10_000 + number for number, piece in enumerate(set(pieces))}
    return [ids[piece] for piece in pieces]


def fed_until_loop(token_ids):
    """How many tokens the guard took before it called them a loop; None when it never did."""
    guard = LoopGuard()
    for number, token_id in enumerate(token_ids, start=1):
        if guard.feed(token_id):
            return number
    return None


def prose(count, seed=0):
    generator = random.Random(seed)
    return [generator.randrange(2000) for _ in range(count)]


@pytest.mark.parametrize("block", [1, 2, 3, 7, 31, 63, 64, 65, 100, 159, MAX_BLOCK])
@pytest.mark.parametrize("before", [0, 5, 700])
def test_a_block_that_comes_again_and_again_is_a_loop(block, before):
    needed = max(MIN_TOKENS, MIN_REPEATS * block)
    taken = fed_until_loop(prose(before) + list(range(5000, 5000 + block)) * (1000 // block + 7))
    assert before + needed <= taken < before + needed + CHECK_EVERY


def test_a_block_with_repeats_inside_it_is_found_too():
    assert fed_until_loop([1, 1, 1, 2, 1, 1, 3] * 100) is not None


def test_a_loop_is_seen_within_an_answer_of_the_default_length():
    assert fed_until_loop(prose(30) + prose(MAX_BLOCK, seed=1) * 7) <= 1024


def test_a_loop_that_was_broken_begins_anew():
    assert fed_until_loop(([7] * (MIN_TOKENS - CHECK_EVERY) + [8]) * 3) is None


def test_prose_is_no_loop():
    assert fed_until_loop(prose(20_000)) is None


HARMLESS = {
    "a table row of dashes": "|---|:---:|" + "-" * 200 + "|\n",
    "a laugh": "ha " * 100,
    "a cheer": "no " * 60 + "!" * 100,
    "a numbered list": "".join(f"{n}. Item {n}\n" for n in range(1, 200)),
    "a list of numbers": ", ".join(str(n) for n in range(1000)),
    "a list of a hundred zeros": "[" + "0, " * 100 + "]",
    "deep code": "".join(" " * 4 * n + f"if a[{n}] == b[{n}]:\n" for n in range(60)),
    "closing brackets": "".join(" " * (80 - n) + "}\n" for n in range(80)),
    "an empty table": ("|" + "   |" * 8 + "\n") * 12,
    "a times table": "".join(f"{a} x {b} = {a * b}\n" for a in range(1, 13) for b in range(1, 13)),
    "an identity matrix": "".join(
        "[" + ", ".join("1" if a == b else "0" for b in range(12)) + "],\n" for a in range(12)
    ),
    "a chorus sung four times": "We will sing it to the rafters, we will sing it to the sea.\n" * 4,
    "a line written out as asked": "I will be on time.\n" * 50,
    "a paragraph asked for five times": (" ".join(f"word{chr(97 + n)}" for n in range(26)) + "\n")
    * 5,
    "rows of alike data": "".join(f'{{"id": {n}, "ok": true, "tags": []}},\n' for n in range(150)),
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
def test_text_that_repeats_with_reason_is_no_loop(text):
    assert fed_until_loop(tokens_of(text) + prose(100)) is None
    assert fed_until_loop(prose(77) + tokens_of(text) + prose(100)) is None


@pytest.mark.parametrize("block", [1, 7, 50])
def test_a_whole_answer_is_a_loop_where_the_guard_would_end_it(block):
    token_ids = prose(100) + list(range(5000, 5000 + block)) * (900 // block)
    ends = fed_until_loop(token_ids)
    looping = [end for end in range(len(token_ids) + 1) if is_loop(token_ids[:end])]
    assert looping[0] == ends
