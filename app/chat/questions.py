"""What an answer is asked with: the model, what it reads, and how it is to answer.

Everything that stands in the way of an answer is found here, before anything is stored.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from app.chat.belonging import belonging_of, request_options
from app.chat.chat_model import ChatModel
from app.chat.digest import digest_of, wish_of
from app.chat.draft import Draft
from app.chat.likelihoods import NUM_ALTERNATIVES
from app.chat.message import Conversation, Message, Seen
from app.chat.prompts import Prompt, make_prompt
from app.chat.quotations import grounds_of
from app.chat.senses import check_readable, unread_notice
from app.chat.whole_reading import Reading, grounds_of_whole, held_reading, reading_of
from app.chat.writing import Begun, Question
from app.documents.grounds import Grounds
from app.media.attachment import Attachment
from app.settings import Settings
from engine.errors import UsageError
from engine.sampling_params import with_changes

if TYPE_CHECKING:
    from app.documents.answering import Answering

NOTHING_CHOSEN = (
    "No file is chosen to be summed up: choose one at the message box, or “Ask” beside it in"
    " Documents."
)
NOT_ONE_TO_SUM_UP = (
    "One document is summed up at a time, and what was chosen is none with text, or more than one:"
    " choose one file."
)
NO_MARKS_IN_A_FORM = (
    "This answer has a form, so it does not say which statement stands in which passage."
)


class Questions:
    """Asks; changes nothing. Owned by the event loop. The arguments are those of `ChatSession`."""

    def __init__(
        self,
        model: Callable[[], Awaitable[ChatModel]],
        settings: Callable[[], Settings],
        answering: "Callable[[], Answering] | None" = None,
    ) -> None:
        self._model = model
        self._settings = settings
        self._answering = answering

    async def of(
        self,
        conversation: Conversation,
        path: Sequence[Message],
        shown: Sequence[Message],
        text: str | None = None,
        attachments: Sequence[Attachment] = (),
        held: Grounds | None = None,
    ) -> Question:
        """For the last message of the user in `path`, or for a `text` that comes after it; `shown`
        is the branch that was open. `held` is what it is to stand on in any case."""
        settings = self._settings()
        params = with_changes(settings.sampling, conversation.sampling)
        model = await self._model()
        info = model.loaded.info
        check_readable(info, [each.kind for each in attachments])
        draft = Draft(model, conversation, path, text, tuple(each.media for each in attachments))
        reading = await self._reading(draft, params.max_tokens, held)
        belonging = belonging_of(conversation.conversation_id)
        grounds = None if held is None else held.unchecked()
        if isinstance(reading, Reading):
            draft, belonging = await reading.applied(draft)
            grounds = reading.grounds
        elif held is None and conversation.documents is not None and self._answering is not None:
            grounds = await grounds_of(draft, shown, params.max_tokens, self._answering())
        if grounds is not None and not grounds.is_found:
            # No model is asked, so there is nothing to send and no form to keep to.
            conversation, made = replace(conversation, answer_form=None), Prompt((), [], Seen())
        else:
            made = await make_prompt(replace(draft, grounds=grounds), shown, params.max_tokens)
        notices = [unread_notice(info, [each for turn in made.turns for each in turn.media])]
        if isinstance(reading, str):
            notices.append(reading)
        if grounds is not None and conversation.answer_form is not None:
            notices.append(NO_MARKS_IN_A_FORM)
        options = request_options(
            is_reproducible=settings.reproducible,
            num_logprobs=NUM_ALTERNATIVES if settings.show_likelihoods else None,
        )
        return Question(
            model=model,
            made=made,
            notice=" ".join(filter(None, notices)),
            params=params,
            options=replace(options, belonging=belonging),
            system_prompt=draft.conversation.system_prompt,
            clock=conversation.created_at,
            examples=conversation.examples,
            form=conversation.answer_form,
            grounds=grounds,
            read=reading.read if isinstance(reading, Reading) else None,
        )

    async def of_digest(
        self, conversation: Conversation, path: Sequence[Message], *, is_again: bool = False
    ) -> Question:
        """For a summary of the one document that the conversation asks. `is_again`: the wish for it
        is the last message of `path`, and not yet to come."""
        settings = self._settings()
        params = with_changes(settings.sampling, conversation.sampling)
        model = await self._model()
        documents = conversation.documents
        if documents is None or self._answering is None:
            raise UsageError(NOTHING_CHOSEN)
        seen = await self._answering().whole(documents)
        read = None if seen is None else await self._answering().mark_whole(seen)
        if read is None:
            raise UsageError(NOT_ONE_TO_SUM_UP)
        digest = await digest_of(
            model, read, params, conversation.system_prompt, conversation.created_at
        )
        draft = Draft(model, conversation, path, None if is_again else wish_of(read))
        return Question(
            model=model,
            made=Prompt(draft.turns(), [], Seen()),
            params=params,
            options=request_options(
                conversation.conversation_id,
                is_reproducible=settings.reproducible,
                is_background=True,
            ),
            system_prompt=conversation.system_prompt,
            clock=conversation.created_at,
            examples=conversation.examples,
            grounds=replace(grounds_of_whole(read, documents), is_summary=True),
            read=read,
            digest=digest,
        )

    async def _reading(
        self, draft: Draft, max_answer_tokens: int, held: Grounds | None
    ) -> Reading | str:
        """The document that is to be read whole; or why it is searched instead, which is empty
        where nobody wanted that."""
        if self._answering is None:
            return ""
        if held is not None:
            return "" if held.whole is None else await held_reading(held, self._answering())
        documents = draft.conversation.read_whole
        if documents is None:
            return ""
        return await reading_of(draft, documents, max_answer_tokens, self._answering())


def begun_by(answer: Message, place: int, token_id: int, model_name: str) -> Begun:
    """The beginning of `answer`, with this token at its `place`. Raises UsageError."""
    if answer.likelihoods is None:
        raise UsageError(
            "Of this answer it is not known what else could have come: switch on in the settings"
            " that it is shown how sure the model was, and let it answer again."
        )
    if answer.model != model_name:
        raise UsageError(
            f"This answer was written by {answer.model}, and {model_name} is loaded, which has"
            " other tokens: load that model to go on from one of them."
        )
    tokens = answer.likelihoods.tokens()
    others = tokens[place].alternatives if 0 <= place < len(tokens) else ()
    chosen = next((each for each in others if each.token_id == token_id and each.text), None)
    if chosen is None or token_id == answer.token_ids[place]:
        raise UsageError("This is no other way to go on from there: choose an alternative.")
    instead = replace(tokens[place], text=chosen.text, logprob=chosen.logprob)
    return Begun((*answer.token_ids[:place], token_id), (*tokens[:place], instead))
