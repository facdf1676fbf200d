"""Adapters on a real model: they change its answers and its KV, which is never read without them.

vllm-project/vllm#44250, LMCache/LMCache#2961, ggml-org/llama.cpp#26207: KV of one adapter was used
under another one.
"""

import random
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from engine.adapter import Adapter
from engine.backends.llama_cpp import adapter as adapter_module
from engine.backends.llama_cpp.adapter import LlamaAdapter, adapter_error
from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.model import LlamaModel
from engine.backends.llama_cpp.step_batch import Part
from engine.config import EngineConfig
from engine.errors import ModelDamaged, ModelError, ModelNotFound, ModelUnsupported, OutOfMemory
from engine.kv.disk_folder import DiskFolder
from engine.kv.namespace import namespace_of
from engine.kv.segment import Belonging
from engine.loading import draft_config
from engine.request import RequestOptions
from engine.sampling.draft_model import DraftModel
from tests.engine.backends.llama_cpp.model_run import ModelRun
from tests.engine.backends.llama_cpp.test_draft_model import DearCosts
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fakes import EvenCosts

REPRODUCIBLE = RequestOptions(
    belonging=Belonging(owner="chat", is_durable=True), is_reproducible=True
)


@pytest.fixture
def config(tmp_path: Path) -> EngineConfig:
    return EngineConfig(
        model_path=write_tiny_model(tmp_path / "tiny.gguf"),
        context_tokens=1024,
        max_sequences=8,
        max_running=4,
        threads=1,
        kv_ram_bytes=2**28,
    )


@pytest.fixture
def pirate(tmp_path: Path) -> Path:
    return write_tiny_adapter(tmp_path / "pirate.gguf")


@pytest.fixture
def sailor(tmp_path: Path) -> Path:
    return write_tiny_adapter(tmp_path / "sailor.gguf", seed=1)


def words(seed: int, count: int) -> list[int]:
    return random.Random(seed).choices(range(3, 260), k=count)


def adapted(config: EngineConfig, *adapters: Adapter) -> EngineConfig:
    return replace(config, adapters=adapters)


def computed(config: EngineConfig, *adapters: Adapter) -> tuple[NDArray[np.float32], bytes]:
    """The logits behind a prompt and its KV, from nothing."""
    backend = LlamaBackend(adapted(config, *adapters))
    try:
        assert backend.kv_memory.decode([Part(0, 0, words(1, 60), 1)]) is None
        blob = backend.kv_memory.export(0, 0, 60)
        assert blob is not None
        return backend.kv_memory.logits(1)[0].copy(), blob.tobytes()
    finally:
        backend.close()


def namespace(config: EngineConfig, *adapters: Adapter) -> bytes:
    backend = LlamaBackend(adapted(config, *adapters))
    backend.close()
    return backend.kv_memory.namespace


class Home:
    """The engine on a disk that outlives it, under the namespace that it says."""

    def __init__(self, config: EngineConfig, folder: Path) -> None:
        self.backend = LlamaBackend(config)
        self.run = ModelRun(self.backend, config)
        model = sha256(config.model_path.read_bytes()).digest()
        disk = DiskFolder(folder, namespace_of(model, self.backend.kv_memory.namespace))
        self.run.engine.attach_disk(disk, disk.open())

    def ask(self, prompt: list[int]) -> tuple[list[int], int]:
        """The answer, and how many tokens of the prompt were read."""
        number = self.run.submit(prompt, REPRODUCIBLE, max_tokens=8)
        self.run.finish()
        return self.run.tokens[number], self.run.timings(number).prefilled_tokens

    def rest(self) -> None:
        while self.run.engine.maintain() is not None:
            pass

    def close(self) -> None:
        self.rest()
        self.run.engine.close()


def asked(config: EngineConfig, folder: Path, prompt: list[int]) -> tuple[list[int], int]:
    """By an engine of its own, which is ended afterwards."""
    home = Home(config, folder)
    try:
        return home.ask(prompt)
    finally:
        home.close()


def test_an_adapter_changes_logits_and_kv_by_its_scale(config: EngineConfig, pirate: Path) -> None:
    scales = (1.0, 0.5, -1.0)
    logits, blobs = zip(
        computed(config),
        *[computed(config, Adapter(pirate, scale)) for scale in scales],
        strict=True,
    )
    assert len({each.tobytes() for each in logits}) == len(set(blobs)) == 4
    again = computed(config, Adapter(pirate, 0.5))
    assert np.array_equal(again[0], logits[2]) and again[1] == blobs[2]


def test_a_scale_of_nothing_is_no_adapter(config: EngineConfig, pirate: Path) -> None:
    """As in llama.cpp, which passes over it."""
    without, nothing = computed(config), computed(config, Adapter(pirate, 0.0))
    assert np.array_equal(without[0], nothing[0]) and without[1] == nothing[1]
    assert namespace(config) == namespace(config, Adapter(pirate, 0.0))
    model = LlamaModel(config.model_path)
    loaded = LlamaAdapter(Adapter(pirate, 0.0), model)
    backend = LlamaBackend(config)
    adapter_module.apply_adapters(backend.kv_memory._pointer, [loaded])
    assert backend.kv_memory.decode([Part(0, 0, words(1, 60), 1)]) is None
    assert np.array_equal(backend.kv_memory.logits(1)[0], without[0])
    backend.close()
    model.close()


def test_the_namespace_is_that_of_content_and_scale_in_their_order(
    config: EngineConfig, pirate: Path, sailor: Path, tmp_path: Path
) -> None:
    one, other = Adapter(pirate), Adapter(sailor)
    ways = [(), (one,), (other,), (Adapter(pirate, 0.5),), (one, other), (other, one)]
    names = {namespace(config, *way) for way in ways}
    assert len(names) == len(ways)
    moved = tmp_path / "elsewhere.gguf"
    moved.write_bytes(pirate.read_bytes())
    assert namespace(config, Adapter(moved)) == namespace(config, one)


def test_two_adapters_give_the_same_bits_at_every_load(
    config: EngineConfig, pirate: Path, sailor: Path
) -> None:
    both = Adapter(pirate), Adapter(sailor, 0.5)
    first = computed(config, *both)
    for _ in range(3):
        again = computed(config, *both)
        assert np.array_equal(again[0], first[0]) and again[1] == first[1]


def test_kv_is_never_used_under_another_adapter_and_is_found_again(
    config: EngineConfig, pirate: Path, tmp_path: Path
) -> None:
    prompt, with_pirate = words(1, 300), adapted(config, Adapter(pirate))
    plain, _ = asked(config, tmp_path / "none", prompt)
    changed, _ = asked(with_pirate, tmp_path / "alone", prompt)
    assert plain != changed
    shared = tmp_path / "kv"
    weaker = adapted(config, Adapter(pirate, 0.5))
    for way, expected in ((config, plain), (with_pirate, changed)):
        assert asked(way, shared, prompt) == (expected, 300)
    assert asked(weaker, shared, prompt)[1] == 300
    for way, expected in ((config, plain), (with_pirate, changed)):
        answer, num_read = asked(way, shared, prompt)
        assert answer == expected and num_read <= 300 - 256


def test_answers_are_the_same_bits_cold_and_warm_in_cells_memory_and_disk(
    config: EngineConfig, pirate: Path, tmp_path: Path
) -> None:
    way, start = adapted(config, Adapter(pirate, 0.7)), words(1, 300)
    first = asked(way, tmp_path / "first", start)[0]
    longer = [*start, *first, *words(2, 40)]
    expected = asked(way, tmp_path / "cold", longer)
    assert expected[1] == len(longer)
    home = Home(way, tmp_path / "kv")
    home.ask(start)
    held = home.ask(longer)
    home.rest()
    for seed in range(10, 14):
        home.ask(words(seed, 300))
    from_memory = home.ask(longer)
    home.close()
    from_disk = asked(way, tmp_path / "kv", longer)
    for answer, num_read in (held, from_memory, from_disk):
        assert answer == expected[0] and num_read <= len(longer) - 256


def test_what_a_draft_model_guesses_is_judged_by_the_adapted_model(
    config: EngineConfig, pirate: Path
) -> None:
    way = adapted(config, Adapter(pirate))
    assert draft_config(way, config.model_path).adapters == ()
    backend = LlamaBackend(way)
    run = ModelRun(backend, way, DearCosts())
    expected = run.answer(words(3, 50), max_tokens=20)
    run.engine.close()
    plain = LlamaBackend(config)
    assert ModelRun(plain, config).answer(words(3, 50), max_tokens=20) != expected
    plain.close()
    backend = LlamaBackend(way)
    drafting = DraftModel(LlamaBackend(draft_config(way, config.model_path)), EvenCosts())
    run = ModelRun(backend, way)
    run.engine = type(run.engine)(backend, way, DearCosts(), drafting)
    number = run.submit(words(3, 50), max_tokens=20)
    run.finish()
    assert run.timings(number).drafted_tokens > 0
    assert run.tokens[number] == expected
    run.engine.close()


def test_the_answers_name_says_the_adapters(
    config: EngineConfig, pirate: Path, sailor: Path
) -> None:
    backend = LlamaBackend(adapted(config, Adapter(pirate, 0.8), Adapter(sailor)))
    assert backend.info.name == "tiny + pirate 0.8 + sailor"
    backend.close()


def test_its_size_counts_before_anything_is_loaded(config: EngineConfig, pirate: Path) -> None:
    model = LlamaModel(config.model_path, facts_only=True)
    more = model.shape.memory_bytes(adapted(config, Adapter(pirate)))
    assert more - model.shape.memory_bytes(config) == pirate.stat().st_size
    assert model.shape.memory_bytes(adapted(config, Adapter(pirate, 0))) < more
    model.close()


@pytest.mark.parametrize(
    ("content", "error"),
    [("none", ModelNotFound), ("model", ModelUnsupported), ("text", ModelDamaged)],
)
def test_a_file_that_is_no_adapter_leaves_nothing_loaded(
    config: EngineConfig, tmp_path: Path, content: str, error: type[ModelError]
) -> None:
    path = tmp_path / "wrong.gguf"
    if content == "model":
        path = config.model_path
    elif content == "text":
        path.write_text("ahoy")
    with pytest.raises(error, match=path.name):
        LlamaBackend(adapted(config, Adapter(path)))


def test_what_llama_cpp_refuses_is_a_sentence(
    config: EngineConfig, pirate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were our look at the file to miss something."""
    monkeypatch.setattr(adapter_module, "check_fits", lambda *_: None)
    other = write_tiny_adapter(pirate.with_name("other.gguf"), architecture="gemma3")
    with pytest.raises(ModelDamaged, match=r"other.gguf could not be loaded \(model arch"):
        LlamaBackend(adapted(config, Adapter(other)))
    assert isinstance(adapter_error(pirate, ["unable to allocate a buffer"]), OutOfMemory)


def test_a_file_that_changes_while_it_is_read_is_not_used(
    config: EngineConfig, pirate: Path, sailor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = adapter_module.hashlib.file_digest

    def replaced(file: object, name: str) -> object:
        found = digest(file, name)
        sailor.replace(pirate)
        return found

    monkeypatch.setattr(adapter_module.hashlib, "file_digest", replaced)
    with pytest.raises(ModelError, match="was changed while it was read"):
        LlamaBackend(adapted(config, Adapter(pirate)))


def test_an_adapter_is_freed_with_its_model(config: EngineConfig, tmp_path: Path) -> None:
    large = write_tiny_adapter(tmp_path / "large.gguf", rank=8000)
    size = large.stat().st_size
    assert size > 10**7
    way = adapted(config, Adapter(large))
    process, before = psutil.Process(), 0
    for number in range(8):
        LlamaBackend(way).close()
        if number == 1:
            before = process.memory_info().rss
    assert process.memory_info().rss - before < 3 * size
