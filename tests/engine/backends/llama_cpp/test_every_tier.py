"""Every kind of model through every tier: what public reports say of others must not happen here.

The numbers of those reports stand with each test.
"""

import itertools
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.backends.base import StepFailure
from engine.backends.llama_cpp.abort_flag import AbortFlag
from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.context import LlamaContext
from engine.backends.llama_cpp.kv_type import KVType
from engine.backends.llama_cpp.library import bindings
from engine.batch import Batch
from engine.engine import RequestFailure
from engine.kv.segment import Belonging
from engine.request import FinishReason, Request, RequestOptions, RequestOutput
from tests.engine.backends.kv_home import Home, Recorder
from tests.engine.backends.llama_cpp.model_run import logits_after, small_context
from tests.engine.backends.llama_cpp.test_kv_tiers import ORDINARY, OTHERS, REPRODUCIBLE
from tests.engine.backends.llama_cpp.tiny_model import WINDOW, write_tiny_model

CUTTABLE = ["llama", "gemma3"]
WHOLE = ["mamba", "jamba", "lfm2"]
every_kind = pytest.mark.parametrize("kind", [*CUTTABLE, *WHOLE])


class TinyHome(Home):
    """On one thread: a tiny model gains nothing by two, which wait for each other on a busy
    machine."""

    def start(self) -> None:
        self.config = replace(self.config, threads=1)
        super().start()


@pytest.fixture
def home(kind: str, tmp_path: Path) -> Iterator[Home]:
    made = TinyHome(write_tiny_model(tmp_path / f"{kind}.gguf", kind), tmp_path / "kv")
    yield made
    made.run.engine.close()


def words(seed: int, count: int) -> list[int]:
    return random.Random(seed).choices(range(3, 260), k=count)


def evict(home: Home) -> None:
    home.run.engine._seats.evict_idle()
    home.run.engine.check()


def logits_from_nothing(
    home: Home, prompt: list[int], kv_type: KVType = "f16"
) -> NDArray[np.float32]:
    """In a memory of its own, where nothing was ever held."""
    context = LlamaContext(
        home.backend._model, num_cells=1024, num_sequences=1, max_batch_tokens=64, kv_type=kv_type
    )
    context.set_threads(1)
    logits = logits_after(context, prompt)
    context.close()
    return logits


def assert_near(one: NDArray[np.float32], other: NDArray[np.float32]) -> None:
    """KV of other shapes is rounded otherwise; KV of another word is far away."""
    assert np.abs(one - other).max() < 0.05


def restored_from(home: Home) -> str:
    return home.run.timings(max(home.run.tokens)).restored_from


@every_kind
def test_a_chat_that_only_grows_reads_what_is_new_and_one_token(home: Home) -> None:
    """Nothing restored after a restart, or all of it read again in every turn:
    ggml-org/llama.cpp#26676, #25913, #24055, #22746, #21831."""
    history = words(1, 3 * WINDOW)
    history += home.ask(history, ORDINARY, 5)[0]
    steps = [
        ("go on", ""),
        ("another chat", ""),
        ("evict", "ram"),
        ("restart", "disk"),
        ("go on", ""),
        ("reload with other choices", "disk"),
        ("evict", "disk"),
    ]
    for turn, (step, tier) in enumerate(steps):
        match step:
            case "another chat":
                home.ask(words(50 + turn, 2 * WINDOW), OTHERS, 5)
            case "evict":
                evict(home)
            case "restart":
                home.rest()
                home.restart()
            case "reload with other choices":
                home.rest()
                home.config = replace(
                    home.config, context_tokens=512, max_batch_tokens=64, max_sequences=5
                )
                home.restart()
        history += words(10 + turn, 7)
        answer, _, num_read = home.ask(history, ORDINARY, 5)
        history += answer
        assert num_read == 7 + 1, step
        # A state of a model that cannot be cut is whole in memory again after a turn.
        assert restored_from(home) in {tier, "ram" if tier else ""}, step


@every_kind
def test_kv_of_every_tier_gives_the_same_bits(home: Home) -> None:
    """A hit of a lower tier gave fluent and wrong answers: sgl-project/sglang#39830, #38031."""
    prompt = words(1, 3 * WINDOW + 5)
    # A state is stored before the last token of what is read, so that must be more than one.
    num_left = 1 if home.backend.kv_memory.can_cut else 2
    home.ask(prompt[:-num_left], ORDINARY, 1)
    found: dict[str, NDArray[np.float32]] = {}
    for tier in ("", "ram", "disk", "disk again"):
        if tier == "ram":
            evict(home)
        elif tier:
            home.rest()
            home.restart()
        _, found[tier], num_read = home.ask(prompt, ORDINARY, 6)
        assert num_read == (1 if tier else num_left)
        assert restored_from(home) == tier.removesuffix(" again")
    for tier, logits in found.items():
        assert np.array_equal(logits, found[""]), tier


@every_kind
def test_a_reproducible_answer_has_the_same_bits_warm_and_cold(home: Home, tmp_path: Path) -> None:
    """Cached and cold differed at temperature 0: ollama/ollama#16860, vllm-project/vllm#5543."""
    prompt = words(1, 5 * WINDOW + 3)
    cold = TinyHome(home.config.model_path, tmp_path / "cold")
    expected, logits, num_read = cold.ask(prompt, REPRODUCIBLE)
    assert num_read == len(prompt)
    cold.run.engine.close()
    # What was read otherwise, or written token by token, has other bits.
    home.ask(prompt, ORDINARY)
    home.ask(prompt[: 4 * WINDOW + 1], REPRODUCIBLE)
    for step in ("warm", "another chat", "restart"):
        if step == "another chat":
            home.ask(words(2, 50), OTHERS)
        elif step == "restart":
            home.rest()
            home.restart()
        answer, same, num_read = home.ask(prompt, REPRODUCIBLE)
        assert answer == expected
        assert np.array_equal(same, logits)
        assert num_read == len(prompt) - 4 * WINDOW, step


FAR = 4 * WINDOW
EDITS = [1, WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW, FAR - 20]


@pytest.mark.parametrize("tier", ["cells", "ram", "disk"])
@pytest.mark.parametrize("kind", CUTTABLE)
def test_an_edit_inside_or_outside_the_window_reads_from_there_on_and_reads_right(
    home: Home, tier: str
) -> None:
    """A sliding window forced the whole prompt to be read again: ggml-org/llama.cpp#13194."""
    held = words(1, FAR)
    home.ask(held, ORDINARY, 1)
    for distance in EDITS:
        if tier == "ram":
            evict(home)
        elif tier == "disk":
            home.rest()
            home.restart()
        edited = [*held[:-distance], *words(distance, 9)]
        _, logits, num_read = home.ask(edited, ORDINARY, 1)
        assert num_read == 9
        assert_near(logits[0], logits_from_nothing(home, edited))


# Damage


def flipped(place: float) -> Callable[[bytearray], None]:
    def flip(content: bytearray) -> None:
        content[int(place * (len(content) - 1))] ^= 0x40

    return flip


def emptied(content: bytearray) -> None:
    content.clear()


def halved(content: bytearray) -> None:
    del content[len(content) // 2 :]


def zeroed(content: bytearray) -> None:
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)


DAMAGES = [*map(flipped, (0.0, 0.01, 0.5, 0.9, 1.0)), emptied, halved, zeroed]


@every_kind
def test_damage_to_one_chat_changes_no_bit_of_another(home: Home, tmp_path: Path) -> None:
    """ggml-org/llama.cpp#27068: a failed restore left garbage, and later answers were empty."""
    mine, other, more = words(1, 101), words(2, 90), words(3, 5)
    home.ask(mine, ORDINARY, 1)
    home.ask(other, OTHERS, 1)
    expected = logits_from_nothing(home, mine)
    home.run.engine.close()
    sound = tmp_path / "sound"
    shutil.copytree(tmp_path / "kv", sound)

    def answers(
        damage: Callable[[bytearray], None] | None,
    ) -> tuple[int, list[NDArray[np.float32]]]:
        shutil.rmtree(tmp_path / "kv")
        shutil.copytree(sound, tmp_path / "kv")
        for path in (tmp_path / "kv").rglob("*.kv"):
            content = bytearray(path.read_bytes())
            if damage and b"chat" in content[:4096]:
                damage(content)
                path.write_bytes(content)
        home.start()
        before = home.ask(other, OTHERS, 4)
        _, middle, num_read = home.ask(mine, ORDINARY, 4)
        after = home.ask([*other, *before[0], *more], OTHERS, 4)
        assert (before[2], after[2]) == (1, len(more) + 1)
        assert_near(middle[0], expected)
        home.run.engine.close()
        return num_read, [before[1], after[1]]

    num_read, undisturbed = answers(None)
    assert num_read == 1
    for damage in DAMAGES:
        num_read, given = answers(damage)
        assert num_read == len(mine)
        assert all(map(np.array_equal, given, undisturbed))
    home.start()


@every_kind
def test_damage_in_memory_to_one_chat_changes_no_bit_of_another(home: Home) -> None:
    mine, other, more = words(1, 101), words(2, 90), words(3, 5)
    given = []
    for is_damaged in (False, True):
        history = other + home.ask(other, OTHERS, 4)[0]
        home.ask(mine, ORDINARY, 1)
        evict(home)
        before = home.ask(history, OTHERS, 4)
        for segment in home.run.engine._seats.store._index:
            if is_damaged and "chat" in segment.num_used:
                assert segment.blob is not None
                segment.blob[len(segment.blob) // 2] ^= 0x40
        _, middle, num_read = home.ask(mine, ORDINARY, 4)
        after = home.ask([*history, *before[0], *more], OTHERS, 4)
        assert (before[2], num_read, after[2]) == (1, 101 if is_damaged else 1, len(more) + 1)
        assert_near(middle[0], logits_from_nothing(home, mine))
        given.append([before[1], after[1]])
        home.run.engine.forget_all()
    assert all(map(np.array_equal, *given))


# Failures of a step


@every_kind
@pytest.mark.parametrize(
    ("code", "is_computed"),
    # Without a free cell nothing was computed; otherwise it may have been or not.
    [(1, False), *itertools.product([-3, -2, -1, 2], [False, True])],
)
def test_no_failure_of_a_step_leaves_a_chat_broken(
    home: Home, code: int, is_computed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ggml-org/llama.cpp#17316: after one failure the positions never fitted again, and every later
    message failed."""
    history = words(1, 60)
    history += home.ask(history, ORDINARY, 5)[0]
    neighbour = words(2, 50)
    home.ask(neighbour, OTHERS, 5)
    decode = bindings.llama_decode
    codes = [code]

    def fail_once(context: object, batch: object) -> int:
        if not codes:
            return int(decode(context, batch))
        if is_computed:
            assert decode(context, batch) == 0
        return codes.pop()

    prompt = [*history, *words(3, 20)]
    for asked in (prompt, [*neighbour, 5, 6]):
        codes = [code]
        with monkeypatch.context() as patch:
            patch.setattr(bindings, "llama_decode", fail_once)
            number = home.run.submit(asked, ORDINARY, max_tokens=4)
            home.run.finish()
        assert not codes
        assert not isinstance(home.run.last[number], RequestFailure)
    for asked in (prompt, [*neighbour, 5, 6], [*prompt[:-3], 9]):
        assert_near(home.ask(asked, ORDINARY, 4)[1][0], logits_from_nothing(home, asked))


def stop_in_the_middle(home: Home, number: int, num_nodes: int = 9) -> None:
    """The user stops an answer while llama.cpp is somewhere in the graph of a step; that of a
    state runs to its end."""
    context = home.backend.kv_memory
    if not context.can_cut:
        home.run.engine.abort_step()
        for output in home.run.engine.step():
            assert output.request_id != number or output.finish_reason is None
        home.run.engine.abort_request(number)
        home.run.engine.check()
        return
    questions = itertools.count()
    callback = bindings.ggml_abort_callback(lambda _: next(questions) >= num_nodes)
    bindings.llama_set_abort_callback(context._pointer, callback, None)
    home.run.engine.step()
    context._abort_flag = AbortFlag(context._pointer)
    home.run.engine.abort_request(number)
    home.run.engine.check()


def stopped(home: Home) -> tuple[list[int], int]:
    """A long prompt that was stopped, and how much of it earlier steps had computed."""
    history = words(1, 3 * WINDOW)
    history += home.ask(history, ORDINARY, 5)[0]
    prompt = history + words(2, 1500)[:700]
    number = home.run.submit(prompt, ORDINARY, max_tokens=8)
    home.run.step()
    num_computed = home.run.engine._generations[number].request.num_computed_tokens
    assert len(history) < num_computed < len(prompt)
    stop_in_the_middle(home, number)
    return prompt, num_computed


@pytest.mark.parametrize("kind", CUTTABLE)
def test_a_prompt_stopped_inside_a_step_is_read_on_from_the_step_before(home: Home) -> None:
    """ggml-org/llama.cpp#29163: an interrupted generation dropped the whole KV."""
    prompt, num_computed = stopped(home)
    _, logits, num_read = home.ask(prompt, ORDINARY, 1)
    assert num_read == len(prompt) - num_computed
    assert_near(logits[0], logits_from_nothing(home, prompt))


@pytest.mark.parametrize("kind", WHOLE)
def test_a_stop_inside_a_step_costs_a_recurrent_model_no_earlier_turn(home: Home) -> None:
    prompt, _ = stopped(home)
    _, logits, num_read = home.ask(prompt, ORDINARY, 1)
    # The state before the last token of the first prompt was stored.
    assert num_read <= len(prompt) - (3 * WINDOW - 1)
    assert_near(logits[0], logits_from_nothing(home, prompt))


# A full context


@every_kind
@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
def test_a_chat_that_filled_the_context_goes_on_without_its_oldest_turns(
    home: Home, kv_type: KVType
) -> None:
    """Crashes and garbage when KV was shifted instead: ggml-org/llama.cpp#12253, #9743, #9383,
    #5652; ollama/ollama#1007."""
    home.config = replace(home.config, context_tokens=256, kv_type=kv_type)
    home.restart()
    prompt = words(1, 240)
    number = home.run.submit(prompt, ORDINARY, max_tokens=100)
    home.run.finish()
    last = home.run.last[number]
    assert isinstance(last, RequestOutput) and last.finish_reason is FinishReason.LENGTH
    assert len(home.run.tokens[number]) == 16
    whole = prompt + home.run.tokens[number]
    shorter = [*whole[:40], *whole[150:], *words(2, 9)]
    _, logits, num_read = home.ask(shorter, ORDINARY, 6)
    # Turns that have moved are read again where they are now.
    assert num_read == len(shorter) - (40 if home.backend.kv_memory.can_cut else 0)
    assert np.isfinite(logits).all()
    assert_near(logits[0], logits_from_nothing(home, shorter, kv_type))


# Everything at once


class Watch(Recorder):
    """The first row of every request, with the words that it must be of."""

    def __init__(self, backend: LlamaBackend) -> None:
        super().__init__(backend)
        self.first: dict[int, tuple[list[int], NDArray[np.float32]]] = {}
        self.requests: set[Request] = set()

    def execute(self, batch: Batch) -> NDArray[np.float32] | StepFailure:
        logits = self._runner.execute(batch)
        self.requests.update(item.request for item in batch.scheduled)
        if not isinstance(logits, StepFailure):
            assert len(logits) == batch.num_rows
            place = 0
            for item in batch.sampled:
                request, row = item.request, logits[place]
                self.first.setdefault(request.request_id, (list(request.token_ids), row.copy()))
                # A row more for each token that was guessed.
                place += item.num_rows
        return logits


@every_kind
def test_among_thirty_chats_each_row_of_logits_is_of_its_own_words_only(home: Home) -> None:
    """ggml-org/llama.cpp#27148: a request got the state of an unrelated conversation. Here chats
    go on, branch and stop at random, in cells for six of them and memory for ten."""
    home.config = replace(home.config, context_tokens=512, max_sequences=7, max_batch_tokens=64)
    home.config = replace(home.config, kv_ram_bytes=10 * 80 * 600, kv_disk_bytes=2_000_000)
    home.restart()
    run, engine = home.run, home.run.engine
    engine._runner = watch = Watch(home.backend)
    # The same pieces however busy the machine is.
    engine._scheduler.learn_speed = lambda num_tokens, seconds: None  # type: ignore[method-assign]
    choose = random.Random(1)
    chats = [words(seed, choose.randrange(20, 70)) for seed in range(30)]
    num_asked = 0
    while num_asked < 90 or engine.has_work:
        if engine.num_running + engine.num_waiting < 5 and num_asked < 90:
            number = choose.randrange(30)
            chat = chats[number]
            length = choose.choice([len(chat), len(chat), choose.randrange(len(chat))])
            chats[number] = (chat[:length] + words(100 + num_asked, 12))[:160]
            options = RequestOptions(belonging=Belonging(owner=f"{number}", is_durable=True))
            run.submit(chats[number], options, max_tokens=choose.randrange(1, 9))
            num_asked += 1
        run.step()
        if choose.random() < 0.5:
            engine.maintain()
        if choose.random() < 0.05:
            engine.abort_request(choose.choice(list(run.tokens)))
    assert sum(request.num_restored_tokens for request in watch.requests) > 200
    assert len(watch.first) > 80
    with small_context(home.backend._model) as context:
        for token_ids, row in watch.first.values():
            assert_near(row, logits_after(context, token_ids))


@every_kind
def test_states_and_windows_stay_within_the_budgets(home: Home, tmp_path: Path) -> None:
    """Checkpoints went beyond the limit of the cache: ggml-org/llama.cpp#21690."""
    ram, disk = 200_000, 600_000
    home.config = replace(home.config, kv_ram_bytes=ram, kv_disk_bytes=disk)
    home.restart()
    histories: list[list[int]] = [[] for _ in range(8)]
    for turn in range(48):
        history = histories[turn % 8] + words(turn, 40)
        options = RequestOptions(belonging=Belonging(owner=f"{turn % 8}", is_durable=True))
        histories[turn % 8] = history + home.ask(history, options, 4)[0]
        home.run.engine.maintain()
        assert home.run.engine.kv_usage().ram_bytes <= ram
        if turn % 12 == 11:
            home.rest()
            num_bytes = home.run.engine.kv_usage().disk_bytes
            home.run.engine.close()
            files = [path for path in (tmp_path / "kv").rglob("*") if path.is_file()]
            assert sum(path.stat().st_size for path in files) <= disk * 1.02
            home.start()
    assert num_bytes > 0.8 * disk, "the budget was never reached"


@every_kind
def test_an_app_that_read_nothing_stops_and_starts(home: Home, tmp_path: Path) -> None:
    """ggml-org/llama.cpp#14434, #17107: saving an empty slot crashed."""
    home.restart()
    number = home.run.submit(words(1, 50), ORDINARY)
    home.run.engine.abort_request(number)
    home.run.tokens.clear()
    home.restart()
    assert not list((tmp_path / "kv").rglob("*.kv"))
    context = home.backend.kv_memory
    assert context.export(0, 0, 0) is None
    context.free(0)
    assert context.truncate(0, 0)
    assert home.ask(words(1, 50), ORDINARY, 2)[2] == 50


@pytest.mark.parametrize("kind", CUTTABLE)
def test_cells_that_llama_cpp_will_not_cut_are_read_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """abetlen/llama-cpp-python#2108, #2133: an ignored refusal left KV of other words behind."""
    remove = bindings.llama_memory_seq_rm
    refused = []

    def refuse(memory: object, sequence_id: int, start: int, end: int) -> bool:
        length = bindings.llama_memory_seq_pos_max(memory, sequence_id) + 1
        if 0 < start < length:
            refused.append(start)
            return False
        return bool(remove(memory, sequence_id, start, end))

    monkeypatch.setattr(bindings, "llama_memory_seq_rm", refuse)
    held = words(1, 4 * WINDOW + 5)
    for turn, length in enumerate((len(held), 100, 70, 5 * WINDOW, 33)):
        options = REPRODUCIBLE if turn % 2 else ORDINARY
        prompt = [*held[:length], *words(turn, 70)]
        _, logits, _ = home.ask(prompt, options, 4)
        assert_near(logits[0], logits_from_nothing(home, prompt))
        stop_in_the_middle(home, home.run.submit([*prompt, 5, 6, 7], ORDINARY))
        _, logits, _ = home.ask([*prompt, 8], options, 4)
        assert_near(logits[0], logits_from_nothing(home, [*prompt, 8]))
    home.run.engine.forget("chat", [held[:50]])
    assert_near(home.ask(held[:60], ORDINARY, 1)[1][0], logits_from_nothing(home, held[:60]))
    assert refused


@every_kind
@pytest.mark.parametrize("way", ["ram", "disk"])
@pytest.mark.parametrize("length", [200, 300, 480])
def test_a_chat_that_takes_much_of_the_context_comes_back(
    home: Home,
    way: str,
    length: int,
) -> None:
    home.config = replace(home.config, context_tokens=512)
    home.restart()
    history = words(1, length)
    history += home.ask(history, ORDINARY, 4)[0]
    if way == "ram":
        evict(home)
    else:
        home.rest()
        home.restart()
    # The last segment of a full context may have to be read.
    assert home.ask([*history, 5, 6], ORDINARY, 2)[2] <= 2 + 1 + (256 if length == 480 else 0)


@pytest.mark.parametrize("kind", WHOLE)
def test_a_state_whose_prompt_is_stopped_inside_a_step_is_read_on(home: Home) -> None:
    prompt, num_computed = stopped(home)
    assert home.ask(prompt, ORDINARY, 1)[2] <= len(prompt) - num_computed


@pytest.mark.parametrize("kind", WHOLE)
def test_a_stop_costs_a_neighbour_nothing_that_it_had_read(home: Home) -> None:
    neighbour = home.run.submit(words(5, 60), OTHERS, max_tokens=20)
    for _ in range(5):
        home.run.step()
    number = home.run.submit(words(6, 300), ORDINARY, max_tokens=4)
    home.run.step()
    before = home.run.engine._generations[neighbour].request.num_computed_tokens
    stop_in_the_middle(home, number)
    home.run.step()
    request = home.run.engine._generations[neighbour].request
    assert request.num_computed_tokens > before and request.num_preemptions == 0
