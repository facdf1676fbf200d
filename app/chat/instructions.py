"""What the model is told before a conversation: the system prompt, and the form of its answers.

The form is enforced without that, but a model that knows what is wanted fills it better, and only
here it reads what a field means. It stands at the beginning, so that the turns after it are read
anew when the form changes, and not with every message.
"""

from app.chat.answer_form import AnswerForm
from app.chat.message import Conversation
from engine.guided.grammar import GrammarKind

LONGEST_SHOWN = 4_000
"""Characters of a form; a longer one would leave too little of the context for the conversation."""

_LEADS = {
    GrammarKind.JSON_SCHEMA: "Answer only in JSON that satisfies this JSON Schema:",
    GrammarKind.REGEX: "Answer only with a text that matches this regular expression:",
    GrammarKind.CHOICE: "Answer only with one of these:",
    GrammarKind.GBNF: "Answer only with a text of this grammar:",
    GrammarKind.LARK: "Answer only with a text of this grammar:",
}


def instructions(conversation: Conversation) -> str:
    """The text in the place of the system prompt; empty when there is nothing to say."""
    form = conversation.answer_form
    parts = [conversation.system_prompt, "" if form is None else wish(form)]
    return "\n\n".join(part for part in parts if part.strip())


def wish(form: AnswerForm) -> str:
    """The form in words, or its source where it has none. Empty for a source that is too long."""
    if form.title and form.description:
        return f"Answer only in this form: {form.title}. {form.description}"
    if not is_shown(form):
        return ""
    return f"{_LEADS[form.grammar.kind]}\n{form.grammar.source}"


def is_shown(form: AnswerForm) -> bool:
    """Whether the model reads the source of the form; it is kept to it in any case."""
    return len(form.grammar.source) <= LONGEST_SHOWN
