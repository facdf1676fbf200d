"""Conversations through every tier of the torch engine's KV: what is read again, the same bits."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.kv.segment import Belonging
from engine.request import RequestOptions
from tests.engine.backends.kv_home import Home
from tests.engine.backends.kv_home import words as words_of_starter
from tests.engine.backends.torch.tiny_models import WORDS, save_tiny

REPRODUCIBLE = RequestOptions(
    belonging=Belonging(owner="chat", is_durable=True), is_reproducible=True
)
ORDINARY = RequestOptions(belonging=Belonging(owner="chat", is_durable=True))
OTHERS = RequestOptions(belonging=Belonging(owner="others", is_durable=True))


@pytest.fixture(params=["llama", "gemma3"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Room for a thousand tokens; Gemma looks back only 16 of them in most layers."""
    folder = tmp_path / "model"
    save_tiny(folder, request.param, max_position_embeddings=1024)
    return folder


@pytest.fixture
def home(model: Path, tmp_path: Path) -> Iterator[Home]:
    made = made_home(model, tmp_path / "kv")
    yield made
    made.run.engine.close()


def made_home(model: Path, folder: Path) -> Home:
    return Home(model, folder, backend="torch", threads=1)


def words(seed: int, count: int) -> list[int]:
    return [3 + token_id % (WORDS - 10) for token_id in words_of_starter(seed, count)]


def test_a_reproducible_answer_has_the_same_bits_warm_and_cold_through_every_tier(
    model: Path, tmp_path: Path
) -> None:
    first = words(1, 300)
    cold = made_home(model, tmp_path / "cold")
    answer, _, _ = cold.ask(first, REPRODUCIBLE)
    second = [*first, *answer, *words(2, 40)]
    cold.run.engine.close()
    cold = made_home(model, tmp_path / "other")
    expected, logits, num_read = cold.ask(second, REPRODUCIBLE)
    assert num_read == len(second)
    cold.run.engine.close()

    warm = made_home(model, tmp_path / "warm")
    assert warm.ask(first, REPRODUCIBLE)[0] == answer

    def check() -> None:
        given, same, num_read = warm.ask(second, REPRODUCIBLE)
        assert given == expected
        assert np.array_equal(same, logits)
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


def test_hot_forked_and_restored_kv_gives_the_same_bits(home: Home) -> None:
    start, more = words(1, 300), words(2, 5)
    home.ask(start, ORDINARY, 1)
    _, _, num_read = home.ask([*start, *more], ORDINARY, 4)
    assert num_read == len(more)
    _, forked, num_read = home.ask([*start, *more], ORDINARY, 4)
    assert num_read == 1
    home.rest()
    home.restart()
    _, restored, num_read = home.ask([*start, *more], ORDINARY, 4)
    assert num_read == 1
    assert np.array_equal(forked, restored)


def test_what_another_chat_says_changes_no_bit(model: Path, tmp_path: Path) -> None:
    found = []
    for seed in (20, 21):
        home = made_home(model, tmp_path / str(seed))
        home.ask(words(seed, 200), OTHERS, 1)
        found.append(home.ask(words(1, 150), ORDINARY)[1])
        home.run.engine.close()
    assert np.array_equal(*found)


def test_many_chats_in_few_cells_read_only_what_is_new(home: Home) -> None:
    histories = []
    for seed in range(8):
        prompt = words(seed, 250)
        histories.append(prompt + home.ask(prompt, OTHERS, 6)[0])
    for seed, history in enumerate(histories):
        _, _, num_read = home.ask([*history, *words(seed, 10)], OTHERS, 2)
        assert num_read == 10 + 1
    home.backend.kv_memory.check()


def test_a_damaged_segment_file_is_read_again_and_others_are_unchanged(
    home: Home, tmp_path: Path
) -> None:
    one, two = words(1, 300), words(2, 300)
    home.ask(one, ORDINARY, 1)
    home.ask(two, OTHERS, 1)
    home.rest()
    home.restart()
    expected = home.ask(two, OTHERS, 4)
    home.restart()
    num_damaged = 0
    for path in (tmp_path / "kv").rglob("*.kv"):
        if b"chat" in path.read_bytes()[:4096]:
            content = bytearray(path.read_bytes())
            content[-1] ^= 0x40
            path.write_bytes(content)
            num_damaged += 1
    assert num_damaged
    assert home.ask(one, ORDINARY, 1)[2] == 300
    given = home.ask(two, OTHERS, 4)
    assert given[2] == expected[2] == 1
    # In whatever blocks it lies, its sums are taken in the order of its tokens.
    assert np.array_equal(given[1], expected[1])
