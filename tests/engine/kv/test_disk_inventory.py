"""The inventory: only what can be reached from a first token is worth a file."""

import random
from dataclasses import replace

from engine.kv.disk_inventory import reachable
from tests.engine.kv.stored import NUM_TOKENS, key_of, number_of, stored


def test_parents_come_first_whatever_the_order() -> None:
    segments = [stored(number) for number in range(64)]
    random.Random(1).shuffle(segments)
    places = {number_of(each.key): place for place, each in enumerate(reachable(segments))}
    assert len(places) == 64
    assert all(places[number // 2] < places[number] for number in range(2, 64))


def test_a_child_may_begin_inside_its_parent_and_at_its_end_but_nowhere_else() -> None:
    root = stored(1)
    for start in range(NUM_TOKENS + 3):
        child = replace(stored(2), start=start)
        is_reached = len(reachable([child, root])) == 2
        assert is_reached == (1 <= start <= NUM_TOKENS)


def test_a_first_segment_begins_at_the_first_token() -> None:
    assert reachable([replace(stored(1), start=1)]) == []


def test_what_stands_on_nothing_or_on_itself_is_not_reached() -> None:
    circle = [replace(stored(2), parent_key=key_of(3)), replace(stored(3), parent_key=key_of(2))]
    orphan = stored(9)
    assert reachable([stored(1), *circle, orphan]) == [stored(1)]
