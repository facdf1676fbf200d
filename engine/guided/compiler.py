"""From a form as it was written to what the engine can follow, or to a sentence that says why not.

    event loop --compile()--> worker threads: read, compile, first mask
               <-- CompiledGrammar, or GrammarError within `COMPILE_SECONDS`, waiting included

Only the first form of a model takes longer, when the vocabulary is made. A form that takes too long
is given up by whoever asked; its thread ends it by itself, as the caps on its size and llguidance's
own limits see to.
"""

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import llguidance

from engine.errors import EngineDead, GrammarError, GrammarFailed
from engine.guided.examples import closing_first, example_of, examples_of, literals_in_lark
from engine.guided.faults import fault_of
from engine.guided.formats import with_patterns
from engine.guided.gbnf import ROOT, read_gbnf
from engine.guided.grammar import Grammar, GrammarKind
from engine.guided.json_place import JsonPlace
from engine.guided.lark import lark_of
from engine.guided.matcher import TOO_MUCH, Matcher
from engine.guided.productions import literals_of
from engine.guided.schema import MAX_BYTES, MAX_CHOICES, Schema, in_words, locate, read_schema
from engine.guided.vocabulary import GuidedVocabulary
from engine.tokenizer import Tokenizer

COMPILE_SECONDS = 1.8
CLOSED = "The model is being closed: ask again when the next one is loaded."
NUM_REMEMBERED = 64
# At most one space or line break with its indent between two things: a model may otherwise go on
# with white space for ever.
WHITESPACE = r"[ ]?|\n[ ]{0,20}"
# An object of 1,000 properties, any of which may be next, takes 4,000 items in a row. Where each
# letter is a lexeme, a mask takes 500,000 of a vocabulary of 262,144, and 50 to 100 ms.
LIMITS = llguidance.LLParserLimits(
    max_grammar_size=200_000,
    max_items_in_row=8_000,
    step_max_items=600_000,
    verbose_errors=False,
)


@dataclass(frozen=True, slots=True, eq=False)
class CompiledGrammar:
    """Any thread may take matchers from it: its own state never goes on, and is copied whole.

    `unenforced`: what of a schema an approximate answer may break, in words; then it is to be
    checked. `endings`: tokens with which an answer, or a string in JSON, may end. `literals`:
    those that stand in a grammar, first what ends something.
    """

    grammar: Grammar
    vocabulary: GuidedVocabulary
    state: llguidance.LLMatcher
    unenforced: str = ""
    endings: tuple[list[int], ...] = ()
    literals: tuple[list[int], ...] = ()

    def matcher(self) -> Matcher:
        """At the beginning of an answer."""
        place = JsonPlace() if self.grammar.kind is GrammarKind.JSON_SCHEMA else None
        state = self.state.deep_copy()
        return Matcher(state, self.vocabulary, place, self.endings, self.literals)


class GrammarCompiler:
    """Of one model. Its methods belong to the event loop."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._workers = ThreadPoolExecutor(2, "grammar")
        self._vocabulary: asyncio.Future[GuidedVocabulary] | None = None
        self._is_closed = False
        self._compiled: OrderedDict[Grammar, CompiledGrammar] = OrderedDict()

    async def compile(self, grammar: Grammar) -> CompiledGrammar:
        """Raises GrammarError with the fault and where it lies."""
        if (known := self._compiled.get(grammar)) is not None:
            self._compiled.move_to_end(grammar)
            return known
        if self._is_closed:
            raise EngineDead(CLOSED)
        loop = asyncio.get_running_loop()
        if self._vocabulary is None or _has_failed(self._vocabulary):
            self._vocabulary = loop.run_in_executor(
                self._workers, GuidedVocabulary, self._tokenizer
            )
        try:
            vocabulary = await asyncio.shield(self._vocabulary)
        except ValueError as error:
            raise GrammarError(
                f"This model cannot answer in a form ({error}): choose another model."
            ) from error
        if self._is_closed:
            raise EngineDead(CLOSED)
        compiling = loop.run_in_executor(self._workers, compile_grammar, grammar, vocabulary)
        try:
            compiled = await asyncio.wait_for(asyncio.shield(compiling), COMPILE_SECONDS)
        except asyncio.CancelledError:
            if self._is_closed and compiling.cancelled():
                raise EngineDead(CLOSED) from None
            raise
        except TimeoutError:
            compiling.add_done_callback(lambda done: done.exception())
            raise GrammarError(
                f"The form is too complicated: it was not understood within {COMPILE_SECONDS}"
                " seconds; make it smaller."
            ) from None
        self._compiled[grammar] = compiled
        if len(self._compiled) > NUM_REMEMBERED:
            self._compiled.popitem(last=False)
        return compiled

    def close(self) -> None:
        self._is_closed = True
        self._workers.shutdown(wait=False, cancel_futures=True)


def _has_failed(future: "asyncio.Future[GuidedVocabulary]") -> bool:
    return future.done() and (future.cancelled() or future.exception() is not None)


def compile_grammar(grammar: Grammar, vocabulary: GuidedVocabulary) -> CompiledGrammar:
    """Raises GrammarError. Takes as long as it takes."""
    try:
        return _compile(grammar, vocabulary)
    except RecursionError as error:
        raise GrammarError("The form is nested too deeply: make it flatter.") from error


def _compile(grammar: Grammar, vocabulary: GuidedVocabulary) -> CompiledGrammar:
    try:
        num_bytes = len(grammar.source.encode())
    except UnicodeEncodeError as error:
        raise GrammarError("The form has half a character in it (a lone surrogate).") from error
    if num_bytes > MAX_BYTES:
        raise GrammarError(
            f"The form has {len(grammar.source):,} characters, and at most {MAX_BYTES:,} bytes are"
            " taken: make it smaller."
        )
    if grammar.kind is GrammarKind.JSON_SCHEMA:
        return _compile_schema(grammar, vocabulary)
    written, literals = _written(grammar)
    state = _begin(written, vocabulary)
    if isinstance(state, str):
        fault = _with_place(state) if grammar.kind is GrammarKind.LARK else state
        raise GrammarError(f"The {_NAMES[grammar.kind]} cannot be used: {fault}.")
    examples = list(grammar.examples)
    if grammar.kind is GrammarKind.REGEX and (example := example_of(grammar.source)):
        examples.append(example)
    return CompiledGrammar(
        grammar,
        vocabulary,
        state,
        endings=_spelled(examples, vocabulary),
        literals=_spelled(closing_first(literals), vocabulary),
    )


def _compile_schema(grammar: Grammar, vocabulary: GuidedVocabulary) -> CompiledGrammar:
    schema = read_schema(grammar.source)
    endings = _spelled([f'{text}"' for text in examples_of(schema)], vocabulary)
    state = _begin(_schema_text(schema), vocabulary)
    if not isinstance(state, str):
        return CompiledGrammar(grammar, vocabulary, state, endings=endings)

    def told_of(part: Schema) -> str:
        state = _begin(_schema_text(part), vocabulary)
        return state if isinstance(state, str) else ""

    path, told = locate(schema, told_of)
    fault = fault_of(told)
    unenforced = f"{fault.words} {in_words(path)}"
    state = _begin(_schema_text(schema, is_lenient=True), vocabulary)
    if not grammar.is_approximate:
        checked = ", or let the answer be checked afterwards instead (approximate)"
        way = fault.remedy + ("" if isinstance(state, str) else checked)
        raise GrammarError(f"The schema cannot be kept to: {unenforced}; {way}.")
    if isinstance(state, str):
        words = fault_of(state).words
        raise GrammarError(f"The schema cannot be kept to, not even approximately: {words}.")
    return CompiledGrammar(grammar, vocabulary, state, unenforced, endings)


def _spelled(texts: Sequence[str], vocabulary: GuidedVocabulary) -> tuple[list[int], ...]:
    return tuple(each for each in map(vocabulary.spell_out, texts) if each is not None)


def _begin(written: str, vocabulary: GuidedVocabulary) -> llguidance.LLMatcher | str:
    """The state at the beginning of an answer, or what is wrong with the form.

    Some faults show with the first mask only.
    """
    try:
        state = llguidance.LLMatcher(vocabulary.ll, written, log_level=0, limits=LIMITS)
    except ValueError as error:
        return _first_line(str(error))
    if state.is_error():
        return _first_line(state.get_error())
    try:
        allowed = vocabulary.allowed(Matcher(state.deep_copy(), vocabulary).fill_bitmask())
    except GrammarFailed as error:
        return _first_line(str(error))
    allowed[vocabulary.end_ids] = False
    return state if allowed.any() else "no answer but an empty one is possible"


def _schema_text(schema: Schema, *, is_lenient: bool = False) -> str:
    return llguidance.LLMatcher.grammar_from_json_schema(
        json.dumps(with_patterns(schema), ensure_ascii=False),
        overrides={
            "whitespace_pattern": WHITESPACE,
            "lenient": is_lenient,
            "coerce_one_of": is_lenient,
        },
    )


def _written(grammar: Grammar) -> tuple[str, Iterable[str]]:
    """In llguidance's own form, and the texts in it. Raises GrammarError for what it would
    misread."""
    source = grammar.source
    written: str
    literals: Iterable[str] = ()
    match grammar.kind:
        case GrammarKind.REGEX:
            # Digits and letters are those of ASCII, as in JSON Schema.
            written = llguidance.LLMatcher.grammar_from_lark(
                f"start: /{llguidance.regex_to_lark(source, use_ascii='dw')}/"
            )
        case GrammarKind.CHOICE:
            written = llguidance.LLMatcher.grammar_from_lark(
                # One terminal: so many rules would be too many.
                "start: CHOICE\nCHOICE: " + " | ".join(map(json.dumps, read_choices(source)))
            )
        case GrammarKind.GBNF:
            rules = read_gbnf(source)
            literals = literals_of(rules)
            written = llguidance.LLMatcher.grammar_from_lark(lark_of(rules, ROOT))
        case _:
            literals = literals_in_lark(source)
            written = llguidance.LLMatcher.grammar_from_lark(source)
    return written, literals


def read_choices(source: str) -> list[str]:
    """Raises GrammarError unless it is a JSON list of different texts."""
    try:
        choices = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise GrammarError("The choices must be a JSON list of texts.") from error
    if not isinstance(choices, list) or not all(isinstance(each, str) for each in choices):
        raise GrammarError("The choices must be a JSON list of texts.")
    if not choices or not all(choices):
        raise GrammarError("There must be at least one choice, and none may be empty.")
    if len(choices) > MAX_CHOICES:
        raise GrammarError(
            f"There are {len(choices):,} choices; at most {MAX_CHOICES:,} are taken."
        )
    if len(set(choices)) < len(choices):
        raise GrammarError("Each choice may be given once.")
    return choices


def _first_line(text: str) -> str:
    lines = text.strip().split("\n")
    if TOO_MUCH in text:
        return TOO_MUCH
    # A regular expression is shown first, over several lines.
    fault = next((line for line in lines if line.startswith("error: ")), lines[0])
    return fault.removeprefix("error: ").strip().rstrip(".")[:300]


def _with_place(fault: str) -> str:
    """llguidance's `3(5): what` of a Lark grammar, in words."""
    return re.sub(r"\A(?:at )?(\d+)\((\d+)\): (.*)\Z", r"\3 in line \1, column \2", fault)


_NAMES = {
    GrammarKind.REGEX: "regular expression",
    GrammarKind.CHOICE: "list of choices",
    GrammarKind.GBNF: "grammar",
    GrammarKind.LARK: "grammar",
}
