"""A model's chat template: turns in, text and control tokens out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn

import jinja2

from app.chat.division import Divider
from app.chat.markup import ControlTexts, Marker, Rendered
from app.chat.message import Role
from app.chat.sandbox import Sandbox
from app.chat.turns import Turn, fold_system
from engine.errors import TemplateError
from engine.media import Media
from engine.tokenizer import THINKING_TAGS, Tokenizer

CHATML = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""

PLAIN = """\
{%- for message in messages %}
{%- if message.role == 'system' %}{{- message.content + '\\n\\n' }}
{%- else %}{{- message.role | capitalize + ': ' + message.content + '\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- 'Assistant:' }}{%- endif %}
"""

# What a compiled template can raise: it is a small Python program.
_FAILURES = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
_TRIAL_TIME = datetime(2024, 2, 29, 12, 0)
_PROBE = "Is this message read?"


class ChatTemplate:
    """Renders conversations for one model. One rendering at a time.

    The template is a program that came with the model, so it runs in a sandbox. Only what it
    writes itself can become a control token; the texts of a conversation never do.
    What it can do is found out by trying when it is made; one that cannot render a single
    message is a TemplateError.
    """

    def __init__(
        self,
        source: str,
        tokenizer: Tokenizer,
        bos_text: str = "",
        eos_text: str = "",
        notice: str = "",
    ) -> None:
        self.notice = notice
        """A sentence for the user when this is not the model's own template, or empty."""
        self._controls = ControlTexts(tokenizer.control_tokens)
        self._media_ids: Callable[[Media], tuple[int, ...]] = lambda media: ()
        self._texts = {"bos_token": bos_text, "eos_token": eos_text}
        self._source_characters = frozenset(source + bos_text + eos_text)
        self._divider = Divider()
        self._takes_parts = False
        self._lead = ""
        try:
            self._render = Sandbox().prepare(source)
        except _FAILURES as error:
            self._fail("cannot be read", error)

        self.supports_system = True
        """If not, the system prompt is put at the head of the user's first message."""
        user = Turn(Role.USER, _PROBE)
        self._takes_parts = not self._shows([user])
        prompt = self._render_turns([user], _TRIAL_TIME).text
        if _PROBE not in prompt:
            raise TemplateError(
                "The model's chat template leaves out the user's message. Choose another model or"
                " another file of this one."
            )
        self.supports_system = self._shows([Turn(Role.SYSTEM, _PROBE), replace(user, content="a")])
        self.opened_tag = next((tag for tag in THINKING_TAGS if prompt.rstrip().endswith(tag)), "")
        """The thinking tag with which the prompt for an answer ends, or empty."""
        self._lead = self._find_lead(prompt)

    @classmethod
    def for_model(
        cls,
        template_text: str | None,
        tokenizer: Tokenizer,
        bos_text: str = "",
        eos_text: str = "",
    ) -> "ChatTemplate":
        """The model's own template; without one, a form that its vocabulary suggests."""
        if template_text and template_text.strip():
            return cls(template_text, tokenizer, bos_text, eos_text)
        if {"<|im_start|>", "<|im_end|>"} <= set(tokenizer.control_tokens):
            return cls(CHATML, tokenizer, bos_text, eos_text)
        return cls(
            PLAIN,
            tokenizer,
            bos_text,
            eos_text,
            "This model brings no chat template and was perhaps never trained to chat: it is shown"
            " the conversation as lines of User and Assistant, and may not keep to its part.",
        )

    def show_media(self, ids_of: Callable[[Media], tuple[int, ...]]) -> None:
        """From now on pictures and sounds stand in what is rendered as these ids."""
        self._media_ids = ids_of

    def render(
        self, turns: Sequence[Turn], now: datetime, add_generation_prompt: bool = True
    ) -> Rendered:
        """The conversation as this model reads it. `now` is the only clock a template sees."""
        if not self.supports_system or len(turns) == 1:
            turns = fold_system(turns)
        return self._render_turns(turns, now, add_generation_prompt)

    def _render_turns(
        self, turns: Sequence[Turn], now: datetime, add_generation_prompt: bool = True
    ) -> Rendered:
        # Marks are never ASCII, and Python knows of a text whether it is without reading it.
        texts = [
            text for turn in turns for text in (turn.content, turn.thinking) if not text.isascii()
        ]
        marker = Marker(self._controls, self._source_characters.union(*texts))
        variables = {
            **self._texts,
            "messages": [self._message(turn, marker) for turn in turns],
            "add_generation_prompt": add_generation_prompt,
            "strftime_now": lambda form: _format_time(now, form),
            "raise_exception": _refuse,
        }
        try:
            return self._divider.divide(self._render(variables), marker)
        except _FAILURES as error:
            self._fail("refuses this conversation", error)

    def _message(self, turn: Turn, marker: Marker) -> Mapping[str, Any]:
        text = turn.content
        if turn.role is Role.ASSISTANT:
            text = text.removeprefix(self._lead)
        shown = "".join(marker.place(self._media_ids(each)) for each in turn.media)
        content: Any = shown + marker.protect(text, turn.token_ids)
        if self._takes_parts:
            content = [{"type": "text", "text": content}]
        message = {"role": turn.role.value, "content": content}
        if turn.thinking:
            message["reasoning_content"] = marker.protect(turn.thinking, turn.token_ids)
        return message

    def _find_lead(self, prompt: str) -> str:
        """The white space this template puts between the prompt and the answer, in old turns.

        A model that reads "Assistant:" writes " Yes"; shown again after "Assistant: ", its own
        space would make two.
        """
        turns = [Turn(Role.USER, _PROBE), Turn(Role.ASSISTANT, "Yes")]
        try:
            answered = self._render_turns(turns, _TRIAL_TIME, False).text
        except TemplateError:
            return ""
        if not answered.startswith(prompt):
            return ""
        lead, found, _ = answered[len(prompt) :].partition("Yes")
        return lead if found and not lead.strip() else ""

    def _shows(self, turns: Sequence[Turn]) -> bool:
        try:
            return _PROBE in self._render_turns(turns, _TRIAL_TIME).text
        except TemplateError:
            return False

    def _fail(self, what: str, error: BaseException) -> NoReturn:
        reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise TemplateError(
            f"The model's chat template {what}: {reason}. Choose another model or another file of"
            " this one."
        ) from error


def _refuse(message: object = "") -> NoReturn:
    raise jinja2.TemplateError(str(message))


def _format_time(now: datetime, form: object) -> str:
    # The C library pads `%999999999d` to that width.
    if len(str(form)) > 100 or any(character.isdigit() for character in str(form)):
        raise ValueError("it asks for a date in a form that is not supported")
    return now.strftime(str(form))
