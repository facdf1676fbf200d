"""What the model is told of the form that its answer is to have.

The form is enforced without that, but a model that knows what is wanted fills it better, and only
here it reads what a field means. It stands after the user's message, and only where the form is
another one than before: so nothing that was read already is changed by choosing a form.
"""

from app.chat.answer_form import AnswerForm
from engine.guided.grammar import GrammarKind

LONGEST_SHOWN = 4_000
"""Characters of a form; a longer one would leave too little of the context for the conversation."""
TEXT_AGAIN = "Answer in plain text again."

_LEADS = {
    GrammarKind.JSON_SCHEMA: "Answer only in JSON that satisfies this JSON Schema:",
    GrammarKind.REGEX: "Answer only with a text that matches this regular expression:",
    GrammarKind.CHOICE: "Answer only with one of these:",
    GrammarKind.GBNF: "Answer only with a text of this grammar:",
    GrammarKind.LARK: "Answer only with a text of this grammar:",
}


class Wishes:
    """Of one branch, asked for in the order of its turns. Owned by whoever builds a prompt."""

    def __init__(self) -> None:
        self._before: str | None = None

    def next(self, form: AnswerForm | None) -> str:
        """What stands after the message whose answer has this form; mostly nothing."""
        words = None if form is None else in_words(form)
        if words == self._before:
            return ""
        self._before = words
        return TEXT_AGAIN if words is None else words


def in_words(form: AnswerForm) -> str:
    """The form as it is described, or else its source. Empty for a source that is too long."""
    if form.title and form.description:
        return f"Answer only in this form: {form.title}. {form.description}"
    if len(form.grammar.source) > LONGEST_SHOWN:
        return ""
    return f"{_LEADS[form.grammar.kind]}\n{form.grammar.source}"


def is_shown(form: AnswerForm) -> bool:
    """Whether the model is told of the form; it is kept to it in any case."""
    return bool(in_words(form))
