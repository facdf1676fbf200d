"""Conversations on a real model through every tier: what is read again, and the same bits."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.kv.segment import Belonging
from engine.request import RequestOptions
from tests.engine.backends.kv_home import Home, words
from tests.engine.backends.llama_cpp.model_run import NEAR_TIE

REPRODUCIBLE = RequestOptions(
    belonging=Belonging(owner="chat", is_durable=True), is_reproducible=True
)
ORDINARY = RequestOptions(belonging=Belonging(owner="chat", is_durable=True))
OTHERS = RequestOptions(belonging=Belonging(owner="others", is_durable=True))


@pytest.fixture
def opened(starter: Path, tmp_path: Path) -> Iterator[Home]:
    home = Home(starter, tmp_path / "kv")
    yield home
    home.run.engine.close()


def test_a_reproducible_answer_has_the_same_bits_warm_and_cold_through_every_tier(
    starter: Path, tmp_path: Path
) -> None:
    first = words(1, 300)
    cold = Home(starter, tmp_path / "cold")
    answer, _, _ = cold.ask(first, REPRODUCIBLE)
    cold.run.engine.close()
    second = [*first, *answer, *words(2, 40)]
    cold = Home(starter, tmp_path / "other")
    expected, logits, num_read = cold.ask(second, REPRODUCIBLE)
    assert num_read == len(second)
    cold.run.engine.close()

    warm = Home(starter, tmp_path / "warm")
    assert warm.ask(first, REPRODUCIBLE)[0] == answer

    def check() -> None:
        given, same, num_read = warm.ask(second, REPRODUCIBLE)
        assert given == expected
        assert np.array_equal(same, logits)
        # All but the last grid of the first prompt, at least.
        assert num_read <= len(second) - 256

    check()
    for seed in (5, 6):
        warm.ask(words(seed, 170), OTHERS)
    check()
    warm.rest()
    warm.restart()
    check()
    warm.ask(words(7, 170), OTHERS)
    check()
    warm.run.engine.close()


def test_hot_forked_and_restored_kv_gives_the_same_bits(opened: Home) -> None:
    start, more = words(1, 300), words(2, 5)
    opened.ask(start, ORDINARY, 1)
    _, hot, num_read = opened.ask([*start, *more], ORDINARY, 4)
    assert num_read == len(more)
    _, forked, num_read = opened.ask([*start, *more], ORDINARY, 4)
    assert num_read == 1
    opened.rest()
    opened.restart()
    _, restored, num_read = opened.ask([*start, *more], ORDINARY, 4)
    assert num_read == 1
    opened.restart()
    _, again, _ = opened.ask([*start, *more], ORDINARY, 4)
    assert np.array_equal(forked, restored)
    assert np.array_equal(restored, again)
    assert hot.shape == forked.shape


def test_what_another_chat_says_changes_no_bit(starter: Path, tmp_path: Path) -> None:
    """The same layout, other content."""
    found = []
    for seed in (20, 21):
        home = Home(starter, tmp_path / str(seed))
        home.ask(words(seed, 200), OTHERS, 1)
        found.append(home.ask(words(1, 150), ORDINARY)[1])
        home.run.engine.close()
    assert np.array_equal(*found)


def test_many_chats_in_few_cells_read_only_what_is_new(opened: Home) -> None:
    histories = []
    for seed in range(8):
        prompt = words(seed, 250)
        histories.append(prompt + opened.ask(prompt, OTHERS, 6)[0])
    for seed, history in enumerate(histories):
        _, _, num_read = opened.ask([*history, *words(seed, 10)], OTHERS, 2)
        assert num_read == 10 + 1


def test_a_damaged_segment_file_is_read_again_and_others_are_unchanged(
    opened: Home, tmp_path: Path
) -> None:
    one, two = words(1, 300), words(2, 300)
    opened.ask(one, ORDINARY, 1)
    opened.ask(two, OTHERS, 1)
    opened.rest()
    opened.restart()
    expected = opened.ask(two, OTHERS, 4)
    opened.restart()
    files = sorted((tmp_path / "kv").rglob("*.kv"), key=lambda path: path.stat().st_size)
    for path in files:
        if b"chat" in path.read_bytes()[:4096]:
            content = bytearray(path.read_bytes())
            content[-1] ^= 0x40
            path.write_bytes(content)
    assert opened.ask(one, ORDINARY, 1)[2] == 300
    given = opened.ask(two, OTHERS, 4)
    assert given[2] == expected[2] == 1
    # Its cells are others now, which changes the order of sums and nothing else.
    assert np.abs(given[1][0] - expected[1][0]).max() < NEAR_TIE
