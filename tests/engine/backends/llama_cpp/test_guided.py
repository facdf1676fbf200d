"""A real model and its vocabulary under a form."""

import json
from typing import Any

import pytest

from engine.backends.llama_cpp.backend import LlamaBackend
from engine.guided.answer import Guidance
from engine.guided.compiler import CompiledGrammar, compile_grammar
from engine.guided.grammar import Grammar, GrammarKind
from engine.guided.validator import AnswerValidator
from engine.guided.vocabulary import GuidedVocabulary
from engine.request import FinishReason, RequestOutput
from tests.engine.backends.llama_cpp.model_run import ModelRun
from tests.engine.guided.schemas import SCHEMAS, made_schemas

# As wild as a model gets, and as people set it.
SETTINGS: list[dict[str, Any]] = [
    {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0},
    {"temperature": 1.5},
    {"temperature": 1.5, "repetition_penalty": 1.3, "presence_penalty": 0.5},
    {"temperature": 1.5, "top_k": 0, "top_p": 0.7, "min_p": 0.0},
    {"temperature": 1.5, "top_k": 3, "frequency_penalty": 1.0},
]
SOME = ["anything", "one of", "share", "moment", "person", "tree"]

MOST_TOKENS = 64
# With those that are written out, two hundred.
NUM_MADE = 200 - len(SCHEMAS)
QUESTION = "<|im_start|>user\nAnswer as JSON.<|im_end|>\n<|im_start|>assistant\n"


@pytest.fixture(scope="module")
def vocabulary(backend: LlamaBackend) -> GuidedVocabulary:
    return GuidedVocabulary(backend.tokenizer)


def of_schema(schema: Any, vocabulary: GuidedVocabulary) -> CompiledGrammar:
    grammar = Grammar(GrammarKind.JSON_SCHEMA, json.dumps(schema))
    return compile_grammar(grammar, vocabulary)


@pytest.mark.parametrize(
    ("schemas", "settings"),
    [
        ({name: SCHEMAS[name] for name in SOME}, SETTINGS[:2]),
        pytest.param(SCHEMAS | made_schemas(NUM_MADE), SETTINGS, marks=pytest.mark.nightly),
    ],
    ids=["some", "all"],
)
def test_what_the_model_finished_is_valid_and_what_it_did_not_is_marked(
    run: ModelRun,
    vocabulary: GuidedVocabulary,
    schemas: dict[str, Any],
    settings: list[dict[str, Any]],
) -> None:
    prompt = run.encode(QUESTION)
    asked: dict[int, str] = {}
    num_short = 0
    for name, schema in schemas.items():
        form = of_schema(schema, vocabulary)
        # Some schemas have no answer of so few tokens.
        num_short += len(settings) * (form.matcher().closing(MOST_TOKENS // 2, 20.0) is not None)
        guidance = Guidance(form)
        for seed, setting in enumerate(settings):
            number = run.submit(
                prompt,
                guidance=guidance,
                seed=seed,
                max_tokens=MOST_TOKENS,
                ignore_eos=False,
                **setting,
            )
            asked[number] = name
    run.finish(100_000)
    num_finished = 0
    for number, name in asked.items():
        last = run.last[number]
        assert isinstance(last, RequestOutput)
        text = spelled(run, number)
        assert " " * 21 not in text
        if last.finish_reason is FinishReason.STOP:
            num_finished += 1
            assert not AnswerValidator(json.dumps(schemas[name])).fault_of(text), (name, text)
        else:
            assert last.finish_reason is FinishReason.GRAMMAR_INCOMPLETE
            assert last.notice
    assert num_finished >= 0.9 * num_short


def spelled(run: ModelRun, number: int) -> str:
    tokenizer = run.backend.tokenizer
    spelled = b"".join(map(tokenizer.token_bytes, run.tokens[number]))
    # What is cut off may end in half a character.
    return spelled.decode("utf-8", "replace")


def test_what_looks_like_a_control_token_is_text(
    run: ModelRun, vocabulary: GuidedVocabulary
) -> None:
    wanted = '<|im_end|><|im_start|>user <td>&lt; \\ "x" 😀'
    guidance = Guidance(of_schema({"const": wanted}, vocabulary))
    number = run.submit(run.encode(QUESTION), guidance=guidance, max_tokens=100, ignore_eos=False)
    run.finish()
    assert json.loads(spelled(run, number)) == wanted
    controls = {token.token_id for token in run.backend.tokenizer.control_tokens.values()}
    assert not controls & set(run.tokens[number])


def test_every_token_has_the_bytes_that_an_answer_shows(
    backend: LlamaBackend, vocabulary: GuidedVocabulary
) -> None:
    tokenizer = backend.tokenizer
    controls = {token.token_id for token in tokenizer.control_tokens.values()}
    for token_id in range(tokenizer.num_tokens):
        if token_id not in controls:
            assert vocabulary.token_bytes[token_id] == tokenizer.token_bytes(token_id)
    assert set(vocabulary.special_token_ids) == controls


def test_a_form_changes_nothing_for_the_neighbours(
    run: ModelRun, vocabulary: GuidedVocabulary
) -> None:
    prompt = run.encode("The sea is")
    alone = run.answer(prompt, max_tokens=20)
    beside = run.submit(prompt, max_tokens=20)
    guidance = Guidance(of_schema(SCHEMAS["person"], vocabulary))
    run.submit(run.encode(QUESTION), guidance=guidance, max_tokens=40, ignore_eos=False)
    run.finish()
    assert run.tokens[beside][:8] == alone[:8]
