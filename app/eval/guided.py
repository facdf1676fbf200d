"""How far JSON Schemas are kept to: each instance is written token by token under its mask.

An invalid instance that is let through to its end, in any order of its keys, is a false accept, a
valid one that is stopped in all of them a false reject. Random walks take any allowed token and end
as the engine ends an answer; what they wrote must be valid.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from app.bench.machine import machine
from app.bench.options import add_model
from app.bench.our_engine import model_of
from app.bench.report import Report
from app.eval.key_orders import KeyOrders
from app.eval.schema_records import Instance, Record, read_records
from engine.errors import GrammarError, GrammarFailed
from engine.guided.compiler import CompiledGrammar, compile_grammar
from engine.guided.grammar import Grammar, GrammarKind
from engine.guided.validator import AnswerValidator
from engine.guided.vocabulary import GuidedVocabulary

COLUMNS = (
    *("subset", "schemas", "refused", "valid", "false_rejects", "invalid", "false_accepts"),
    *("walks", "wrong_walks", "open_walks"),
)
WALK_TOKENS = 300
MOST_CLOSING = 4_000
CLOSING_SECONDS = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--data", required=True, metavar="PATH", help="a collection of schemas")
    parser.add_argument("--approximate", action="store_true", help="refuse only what must be")
    parser.add_argument("--walks", type=int, default=0, metavar="N", help="random answers a schema")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N schemas")


@dataclass(slots=True)
class Tally:
    """Of one subset, or of all."""

    num_schemas: int = 0
    num_valid: int = 0
    num_invalid: int = 0
    num_walks: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    false_accepts: list[str] = field(default_factory=list)
    false_rejects: list[str] = field(default_factory=list)
    disputed: list[str] = field(default_factory=list)
    """Instances about whose label a plain validator disagrees: formats, mostly."""
    wrong_walks: list[str] = field(default_factory=list)
    open_walks: list[str] = field(default_factory=list)
    compile_ms: list[float] = field(default_factory=list)
    mask_us: list[float] = field(default_factory=list)


def run(options: argparse.Namespace) -> Report:
    from engine.backends.llama_cpp.model import LlamaModel

    records = read_records(Path(options.data))[: options.limit]
    model = model_of(options.model)
    loaded = LlamaModel(model, facts_only=True)
    vocabulary = GuidedVocabulary(loaded.vocabulary)
    tallies: dict[str, Tally] = {}
    for record in records:
        tally = tallies.setdefault(record.subset, Tally())
        evaluate(record, vocabulary, tally, options.approximate, options.walks)
    loaded.close()
    total = Tally()
    for tally in tallies.values():
        for name in Tally.__dataclass_fields__:
            setattr(total, name, getattr(total, name) + getattr(tally, name))
    rows = [row_of(name, tally) for name, tally in [*tallies.items(), ("all", total)]]
    facts = machine(
        model=model.stem, vocabulary=vocabulary.num_tokens, data=Path(options.data).name
    )
    return Report(
        "guided",
        facts,
        rows,
        COLUMNS,
        notes=notes_of(total),
        kind="eval",
        totals=totals_of(total),
    )


def evaluate(
    record: Record, vocabulary: GuidedVocabulary, tally: Tally, is_approximate: bool, num_walks: int
) -> None:
    tally.num_schemas += 1
    began = perf_counter()
    try:
        form = compile_grammar(
            Grammar(GrammarKind.JSON_SCHEMA, record.source, is_approximate), vocabulary
        )
    except GrammarError as refusal:
        tally.refused.append((record.name, str(refusal)))
        return
    finally:
        tally.compile_ms.append(1e3 * (perf_counter() - began))
    validator = AnswerValidator(record.source)
    for instance in record.instances:
        judge(record, instance, form, validator, tally)
    for number in range(num_walks):
        tally.num_walks += 1
        text = walk(form, random.Random(f"{record.name} {number}"))
        if text is None:
            tally.open_walks.append(record.name)
        elif fault := validator.fault_of(text):
            tally.wrong_walks.append(f"{record.name}: {fault}: {text[:200]}")


def judge(
    record: Record,
    instance: Instance,
    form: CompiledGrammar,
    validator: AnswerValidator,
    tally: Tally,
) -> None:
    text = json.dumps(instance.data, ensure_ascii=False)
    is_accepted = accepts(form, text, tally.mask_us) or KeyOrders(form).accept(instance.data)
    if form.unenforced and is_accepted:
        # Then the answer is checked, as it is when it is given.
        is_accepted = not validator.fault_of(text)
    tally.num_valid += instance.is_valid
    tally.num_invalid += not instance.is_valid
    if is_accepted == instance.is_valid:
        return
    if (not validator.fault_of(text)) != instance.is_valid:
        tally.disputed.append(f"{record.name}: {text[:200]}")
    elif is_accepted:
        tally.false_accepts.append(f"{record.name}: {text[:200]}")
    else:
        tally.false_rejects.append(f"{record.name}: {text[:200]}")


def accepts(form: CompiledGrammar, text: str, mask_us: list[float]) -> bool:
    """Whether a text could be the answer, with the time of each mask."""
    matcher = form.matcher()
    try:
        for token_id in form.vocabulary(text.encode()):
            began = perf_counter()
            mask = matcher.fill_bitmask()
            mask_us.append(1e6 * (perf_counter() - began))
            if not (mask[token_id >> 5] >> (token_id & 31)) & 1:
                return False
            matcher.accept(token_id)
    except GrammarFailed:
        return False
    return matcher.is_accepting


def walk(form: CompiledGrammar, choose: random.Random) -> str | None:
    """What comes of taking any allowed token. None: no end was found."""
    vocabulary = form.vocabulary
    matcher = form.matcher()
    written: list[int] = []
    row = np.zeros(vocabulary.num_tokens, np.float32)
    length = choose.randrange(WALK_TOKENS)
    try:
        while len(written) < length and not matcher.is_terminated:
            allowed = np.isfinite(matcher.restrict(row)).nonzero()[0]
            token_id = int(allowed[choose.randrange(len(allowed))])
            if token_id in vocabulary.end_ids:
                break
            matcher.accept(token_id)
            written.append(token_id)
        else:
            if not matcher.is_accepting:
                way = matcher.closing(MOST_CLOSING, CLOSING_SECONDS)
                if way is None:
                    return None
                written += way
    except GrammarFailed:
        return None
    return b"".join(vocabulary.token_bytes[each] for each in written).decode("utf-8", "replace")


def row_of(name: str, tally: Tally) -> dict[str, Any]:
    return {
        "subset": name,
        "schemas": tally.num_schemas,
        "refused": len(tally.refused),
        "valid": tally.num_valid,
        "false_rejects": len(tally.false_rejects),
        "invalid": tally.num_invalid,
        "false_accepts": len(tally.false_accepts),
        "walks": tally.num_walks,
        "wrong_walks": len(tally.wrong_walks),
        "open_walks": len(tally.open_walks),
    }


def totals_of(total: Tally) -> dict[str, Any]:
    return {
        "schemas": total.num_schemas,
        "refused": len(total.refused),
        "false_accepts": len(total.false_accepts),
        "false_rejects": len(total.false_rejects),
        "disputed": len(total.disputed),
        "compile_ms_p95": percentile(total.compile_ms, 95),
        "mask_us_p99": percentile(total.mask_us, 99),
        "mask_us_max": max(total.mask_us, default=0.0),
    }


def notes_of(total: Tally) -> list[str]:
    reasons = Counter(reason_of(refusal) for _, refusal in total.refused)
    notes = [f"refused, {count}: {reason}" for reason, count in reasons.most_common()]
    for title, cases in (
        ("false accept", total.false_accepts),
        ("false reject", total.false_rejects),
        ("disputed", total.disputed),
        ("walk that is not valid", total.wrong_walks),
        ("walk without an end", total.open_walks),
    ):
        notes += [f"{title}: {case}" for case in cases]
    return notes


def reason_of(refusal: str) -> str:
    """A refusal without its place."""
    reason = refusal.removeprefix("The schema cannot be kept to: ")
    return re.split(" at #| at the top|;", reason)[0][:100]


def percentile(values: Sequence[float], percent: float) -> float:
    return float(np.percentile(values, percent)) if values else 0.0
