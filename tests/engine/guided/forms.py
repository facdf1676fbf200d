"""Forms over the fake vocabulary of bytes, and what may be written in them."""

import json
from typing import Any

from engine.errors import GrammarFailed
from engine.guided.compiler import CompiledGrammar, compile_grammar
from engine.guided.grammar import Grammar, GrammarKind
from engine.guided.matcher import Matcher
from engine.guided.vocabulary import GuidedVocabulary
from tests.fakes import ByteTokenizer

BYTES = GuidedVocabulary(ByteTokenizer())


def compiled(kind: GrammarKind, source: str, *, is_approximate: bool = False) -> CompiledGrammar:
    return compile_grammar(Grammar(kind, source, is_approximate), BYTES)


def of_schema(schema: Any, *, is_approximate: bool = False) -> CompiledGrammar:
    return compiled(GrammarKind.JSON_SCHEMA, json.dumps(schema), is_approximate=is_approximate)


def after(form: CompiledGrammar, text: str) -> Matcher | None:
    """The state after a text; None: the text is not a beginning of an answer in this form."""
    matcher = form.matcher()
    for byte in text.encode():
        if not form.vocabulary.allowed(matcher.fill_bitmask())[byte]:
            return None
        try:
            matcher.accept(byte)
        except GrammarFailed:
            return None
    return matcher


def accepts(form: CompiledGrammar, text: str) -> bool:
    matcher = after(form, text)
    return matcher is not None and matcher.is_accepting
