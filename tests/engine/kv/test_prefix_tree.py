"""The prefix tree: what was put in is found, shared beginnings once, and nothing else."""

import random

import pytest

from engine.kv.prefix_tree import PrefixTree
from engine.kv.segment import Segment, segment_key
from engine.kv.state_shelf import StateShelf

PIECE = 8


def put(tree: PrefixTree, token_ids: list[int]) -> None:
    """Store all of it, in pieces that end at multiples of `PIECE`."""
    while (length := tree.match(token_ids, len(token_ids)).length) < len(token_ids):
        end = min(len(token_ids), (length // PIECE + 1) * PIECE)
        tree.add(token_ids[:end], length)
    tree.check()


def longest(known: list[list[int]], token_ids: list[int]) -> int:
    """By hand."""
    best = 0
    for each in known:
        count = 0
        while count < min(len(each), len(token_ids)) and each[count] == token_ids[count]:
            count += 1
        best = max(best, count)
    return best


def test_two_conversations_with_one_beginning_store_it_once() -> None:
    tree = PrefixTree()
    put(tree, [1] * 20)
    put(tree, [1] * 11 + [2] * 9)
    assert sum(segment.num_tokens for segment in tree) == 20 + 9
    path = tree.match([1] * 11 + [2] * 9, 20).segments
    assert [segment.start for segment in path] == [0, 8, 11, 16]


def test_a_branch_begins_inside_a_segment_and_leaves_it_whole() -> None:
    tree = PrefixTree()
    put(tree, list(range(16)))
    put(tree, [0, 1, 2, 99])
    match = tree.match(list(range(16)), 16)
    assert match.length == 16
    branch = tree.match([0, 1, 2, 99, 5], 5)
    assert branch.length == 4
    assert branch.segments[1].parent is match.segments[0]
    assert branch.segments[1].prefix() == [0, 1, 2, 99]


def test_the_same_words_after_another_beginning_have_another_key() -> None:
    words = list(range(300, 556))
    after_one = segment_key(b"n", [1] * 256 + words, 256, False)
    after_two = segment_key(b"n", [2] * 256 + words, 256, False)
    assert after_one != after_two
    assert segment_key(b"n", words, 0, False) not in (after_one, after_two)


def test_a_key_differs_with_everything_that_changes_the_kv() -> None:
    prefix = list(range(40))
    keys = {
        segment_key(b"n", prefix, 0, False),
        segment_key(b"m", prefix, 0, False),
        segment_key(b"n", prefix, 16, False),
        segment_key(b"n", prefix, 0, True),
        segment_key(b"n", prefix[:-1], 0, False),
        segment_key(b"n", [*prefix[:-1], 7], 0, False),
    }
    assert len(keys) == 6


def test_a_removed_segment_takes_along_what_stands_on_it() -> None:
    tree = PrefixTree()
    put(tree, [1] * 24)
    put(tree, [1] * 10 + [2] * 6)
    removed = tree.remove(tree.match([1] * 24, 16).segments[1])
    tree.check()
    assert [segment.start for segment in removed][-1] == 8
    assert tree.match([1] * 24, 24).length == 8
    assert len(tree) == 1


def test_a_shortened_segment_keeps_what_stands_on_the_rest_of_it() -> None:
    tree = PrefixTree()
    put(tree, [1] * 16)
    put(tree, [1] * 3 + [2] * 3)
    put(tree, [1] * 6 + [3] * 3)
    first = tree.match([1] * 16, 8).segments[0]
    removed = tree.shorten(first, 4)
    tree.check()
    assert {segment.token_ids[0] for segment in removed} == {1, 3}
    assert tree.match([1] * 16, 16).length == 4
    assert tree.match([1] * 3 + [2] * 3, 6).length == 6


@pytest.mark.parametrize("seed", range(6))
def test_a_random_history_agrees_with_a_list_of_conversations(seed: int) -> None:
    choose = random.Random(seed)
    tree = PrefixTree()
    known: list[list[int]] = []
    for _ in range(400):
        base = choose.choice(known) if known and choose.random() < 0.8 else []
        token_ids = base[: choose.randrange(len(base) + 1)] + choose.choices(range(3), k=12)
        match = tree.match(token_ids, len(token_ids))
        assert match.length == longest(known, token_ids)
        assert spelled(match.segments, match.length) == token_ids[: match.length]
        action = choose.randrange(5)
        if action <= 2:
            put(tree, token_ids)
            known.append(token_ids)
        elif action == 3 and len(tree):
            victim = choose.choice(sorted(tree, key=lambda segment: segment.prefix()))
            prefix = victim.prefix()
            tree.remove(victim)
            # Whoever went through its first token ends before it.
            mark = prefix[: victim.start + 1]
            known = [
                each[: victim.start] if each[: victim.start + 1] == mark else each for each in known
            ]
        elif action == 4 and len(tree):
            segment = choose.choice(sorted(tree, key=lambda segment: segment.prefix()))
            keep = choose.randrange(1, segment.num_tokens + 1)
            prefix = segment.prefix()
            end = segment.start + keep
            if keep < segment.num_tokens:
                tree.shorten(segment, keep)
                mark = prefix[: end + 1]
                known = [each[:end] if each[: end + 1] == mark else each for each in known]
        tree.check()


def spelled(segments: tuple[Segment, ...], length: int) -> list[int]:
    return segments[-1].prefix()[:length] if segments else []


def test_a_state_serves_only_a_prompt_that_begins_with_all_of_it() -> None:
    shelf = StateShelf()
    shelf.add([1, 2, 3], 0)
    shelf.add([1, 2, 3, 4, 5], 0)
    shelf.check()
    assert shelf.match([1, 2, 3, 4], 4).length == 3
    assert shelf.match([1, 2, 3, 4, 5, 6], 6).length == 5
    assert shelf.match([1, 2, 3, 4, 5, 6], 4).length == 3
    assert shelf.match([1, 2], 2).length == 0
    assert shelf.match([1, 2, 4], 3).length == 0
