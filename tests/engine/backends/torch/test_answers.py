"""Forms, seeds and guesses over the torch engine: as over any other backend."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.backends.torch.backend import TorchBackend
from engine.config import EngineConfig
from engine.engine import Engine
from engine.guided.answer import Guidance
from engine.guided.compiler import compile_grammar
from engine.guided.grammar import Grammar, GrammarKind
from engine.guided.vocabulary import GuidedVocabulary
from engine.kv.segment import Belonging
from engine.loading import open_backends
from engine.request import FinishReason, RequestOptions, RequestOutput
from tests.engine.backends.llama_cpp.model_run import ModelRun
from tests.engine.backends.torch.tiny_models import save_tiny
from tests.fakes import EvenCosts

WILD = {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "ignore_eos": False}
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "n": {"enum": [1, 2, 30]}},
    "required": ["ok", "n"],
    "additionalProperties": False,
}
PROMPT = list(range(10, 90))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> EngineConfig:
    folder = tmp_path_factory.mktemp("tiny")
    save_tiny(folder, "qwen2")
    return EngineConfig(model_path=folder, context_tokens=512, threads=1, backend="torch")


@pytest.fixture(scope="module")
def backend(config: EngineConfig) -> Iterator[TorchBackend]:
    made = TorchBackend(config)
    yield made
    made.close()


@pytest.fixture
def run(backend: TorchBackend, config: EngineConfig) -> ModelRun:
    backend.model_runner.accept_steps()
    backend.kv_memory.clear()
    return ModelRun(backend, config)


def test_a_form_is_kept_to(run: ModelRun, backend: TorchBackend) -> None:
    vocabulary = GuidedVocabulary(backend.tokenizer)
    form = compile_grammar(Grammar(GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA)), vocabulary)
    numbers = [
        run.submit(PROMPT[:20], guidance=Guidance(form), seed=seed, max_tokens=120, **WILD)
        for seed in range(6)
    ]
    run.finish()
    for number in numbers:
        last = run.last[number]
        assert isinstance(last, RequestOutput) and last.finish_reason is FinishReason.STOP
        text = b"".join(map(backend.tokenizer.token_bytes, run.tokens[number]))
        found = json.loads(text)
        assert set(found) == {"ok", "n"} and found["n"] in (1, 2, 30)


def test_a_seed_gives_the_same_answer_again_and_another_one_another(run: ModelRun) -> None:
    options = RequestOptions(is_reproducible=True)
    answers = [
        run.answer(PROMPT, options=options, seed=seed, max_tokens=30, temperature=1.0)
        for seed in (1, 1, 2)
    ]
    assert answers[0] == answers[1] != answers[2]


def test_guesses_that_come_true_change_no_answer(
    run: ModelRun, backend: TorchBackend, config: EngineConfig
) -> None:
    """Tiny models soon go round in circles, which is guessed from what was said."""
    plain = run.answer(PROMPT, max_tokens=60)
    backend.kv_memory.clear()
    guessing = ModelRun(backend, config, EvenCosts())
    number = guessing.submit(PROMPT, max_tokens=60)
    guessing.finish()
    assert guessing.tokens[number] == plain
    assert guessing.timings(number).accepted_tokens > 0
    backend.kv_memory.check()


def test_a_draft_model_is_run_by_torch_as_well(config: EngineConfig) -> None:
    backend, draft = open_backends(replace(config, draft_model_path=config.model_path))
    assert backend.kind == "torch" and draft is not None
    run = ModelRun(backend, config)
    plain = run.answer(PROMPT[:30], max_tokens=20)
    backend.kv_memory.clear()
    drafted = ModelRun(backend, config)
    drafted.engine = Engine(backend, config, EvenCosts(), draft)
    number = drafted.submit(PROMPT[:30], max_tokens=20)
    drafted.finish()
    assert drafted.tokens[number] == plain
    # It is the model itself, so that whatever it guesses is right.
    timings = drafted.timings(number)
    assert timings.accepted_tokens == timings.drafted_tokens > 0
    drafted.engine.close()


def test_what_one_asks_again_is_not_read_again(run: ModelRun) -> None:
    options = RequestOptions(belonging=Belonging(owner="chat"))
    first = run.submit(PROMPT, options, max_tokens=4)
    run.finish()
    longer = [*PROMPT, *run.tokens[first], 7, 8, 9]
    second = run.submit(longer, options, max_tokens=4)
    run.finish()
    # All but the last one of the answer, which was never computed.
    assert run.cached_tokens(second) == len(PROMPT) + 3
    again = run.submit([*PROMPT[:40], 5, 6], options, max_tokens=4)
    run.finish()
    assert run.cached_tokens(again) == 40
    exact = [*PROMPT[:32]]
    aligned = run.submit(exact, options, max_tokens=4)
    run.finish()
    # A prompt of whole blocks that is held: its last token is computed for its logits.
    assert run.cached_tokens(aligned) == 31


def test_many_who_write_at_once_write_what_each_writes_alone(
    run: ModelRun, backend: TorchBackend, config: EngineConfig
) -> None:
    prompts = [PROMPT[start : start + 17 + start] for start in range(6)]
    alone = []
    for prompt in prompts:
        backend.kv_memory.clear()
        alone.append(ModelRun(backend, config).answer(prompt, max_tokens=12))
    backend.kv_memory.clear()
    together = ModelRun(backend, config)
    numbers = [together.submit(prompt, max_tokens=12) for prompt in prompts]
    together.finish()
    assert [together.tokens[number] for number in numbers] == alone


def test_a_step_that_is_aborted_is_computed_again(run: ModelRun) -> None:
    expected = run.answer(PROMPT, max_tokens=6)
    number = run.submit([*PROMPT], max_tokens=6)
    run.engine.abort_step()
    run.take(run.engine.step())
    assert not run.tokens[number]
    run.finish()
    assert run.tokens[number] == expected
