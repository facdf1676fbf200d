"""The forms and questions of `bench guided`: each ends by itself, whatever is written in it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.guided.grammar import Grammar, GrammarKind


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the form of its answer."""

    name: str
    question: str
    grammar: Grammar


def text_of(most: int) -> Mapping[str, Any]:
    return {"type": "string", "maxLength": most}


def object_of(properties: Mapping[str, Any]) -> Grammar:
    """Every property, in this order, and no other one."""
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return Grammar(GrammarKind.JSON_SCHEMA, json.dumps(schema))


PERSON = Asked(
    "an object",
    "Who wrote the novel Moby-Dick? Tell me about the author as JSON.",
    object_of(
        {
            "name": text_of(40),
            "born": {"type": "integer", "minimum": 1000, "maximum": 2100},
            "city": text_of(30),
            "known_for": text_of(80),
            "is_alive": {"type": "boolean"},
        }
    ),
)
WORDS = Asked(
    "a list of words",
    "Name twelve animals that live in the sea, as a JSON list.",
    Grammar(
        GrammarKind.JSON_SCHEMA,
        json.dumps({"type": "array", "items": text_of(14), "minItems": 12, "maxItems": 12}),
    ),
)
LONG = Asked(
    "a list of eighty words",
    "Name eighty things that are found in a house, as a JSON list.",
    Grammar(
        GrammarKind.JSON_SCHEMA,
        json.dumps({"type": "array", "items": text_of(12), "minItems": 80, "maxItems": 80}),
    ),
)
PROSE = Asked(
    "prose of a length",
    "Tell me how a lighthouse keeper spent a stormy night.",
    Grammar(GrammarKind.REGEX, r"[A-Z][A-Za-z ,.']{300,400}[.]\n"),
)
RECORD = Asked(
    "a record of fixed values",
    "Order 17: one kettle for Tomas Berg. Write the order as JSON.",
    object_of(
        {
            "document_type": {"const": "order confirmation of the lower mill company"},
            "schema_version": {"const": "2024-02-29"},
            "customer_name": text_of(20),
            "terms_of_delivery": {
                "const": "delivered to the door within ten working days, unloading not included"
            },
            "number_of_items": {"type": "integer", "minimum": 1, "maximum": 9},
            "terms_of_payment": {"enum": ["within thirty days of the invoice", "in advance"]},
            "has_been_confirmed": {"const": True},
        }
    ),
)
LETTER = Asked(
    "a letter with gaps",
    "Write a short letter to Mr Berg: his request of the second of March was granted.",
    Grammar(
        GrammarKind.REGEX,
        "Dear Mr [A-Z][a-z]{2,9},\n\nThank you very much for your letter of the"
        " (first|second|third) of March, which we have read with great care. We are glad to be able"
        " to tell you that your request (was granted|will be looked at again) by the committee in"
        " its last session. You will hear from us within the next [a-z]{3,6} weeks.\n\n"
        "With kind regards,\nThe office of the lower mill company\n",
    ),
)
SENTENCES = [
    "Yes, the order has left our house this morning and will be with you tomorrow.",
    "No, the order waits for a part that was not delivered to us in time.",
    "We cannot tell, because nobody of this name has ordered anything from us.",
    "The order was cancelled by you two weeks ago, so nothing will be sent.",
]
CHOICE = Asked(
    "one of four sentences",
    "Is the order of Mr Berg on its way?",
    Grammar(GrammarKind.CHOICE, json.dumps(SENTENCES)),
)
CHOICES = Asked(
    "eight times one of four",
    "Eight customers ask for their orders. Answer each of them, as a JSON list.",
    Grammar(
        GrammarKind.JSON_SCHEMA,
        json.dumps({"type": "array", "items": {"enum": SENTENCES}, "minItems": 8, "maxItems": 8}),
    ),
)
AGAINST_FREE = (PERSON, WORDS, LONG, PROSE, LETTER)
WITH_FORCED = (RECORD, LETTER, CHOICES, CHOICE, PERSON, PROSE)
"""The last two are forced to little or nothing."""
