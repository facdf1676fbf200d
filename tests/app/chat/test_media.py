"""Pictures in a conversation: where they stand in a prompt, and who cannot see them."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from app.chat.chat_model import ChatModel, load_chat_model
from app.chat.ledger import TokenLedger
from app.chat.message import Role
from app.chat.senses import Senses, check_readable, unread_notice
from app.chat.turns import Turn, normalise
from engine.backends.base import ModelInfo
from engine.errors import UsageError
from engine.media import Media, MediaKind, media_ids
from engine.request import RequestOptions
from engine.sampling_params import SamplingParams
from tests.engine.backends.llama_cpp.seeing import picture, seeing_config, sound
from tests.fakes_model import family
from tests.fakes_text import FAMILIES, Family

NOW = datetime(2026, 1, 2)
SHORT = SamplingParams(temperature=0.0, max_tokens=4, ignore_eos=True, loop_guard=False)


def ids_of(media: Media) -> tuple[int, ...]:
    """A mark, the picture, a mark."""
    return (7, *media_ids(media.digest, 0, 5), 8)


def ledger(form: Family, senses: Senses) -> TokenLedger:
    tokenizer = form.tokenizer()
    return TokenLedger(tokenizer, form.template(tokenizer), senses=senses)


def places(ids: list[int], run: tuple[int, ...]) -> list[int]:
    return [n for n in range(len(ids)) if tuple(ids[n : n + len(run)]) == run]


@pytest.mark.parametrize("form", FAMILIES, ids=lambda form: form.name)
def test_in_every_template_a_picture_stands_before_what_is_said_of_it(form: Family) -> None:
    seeing = ledger(form, Senses(sees=True, ids_of=ids_of))
    text = ledger(form, Senses(sees=True, ids_of=lambda media: ()))
    turns = [
        Turn(Role.USER, "What is this?", media=(picture(),)),
        Turn(Role.ASSISTANT, "A fireplace."),
        Turn(Role.USER, "And these?", media=(picture(2), picture())),
    ]
    ids = seeing.encode(normalise(turns), NOW)
    one, two = ids_of(picture()), ids_of(picture(2))
    first, last = places(ids, one)
    assert places(ids, two) == [last - len(two)]
    # What is left is the conversation without them.
    without = ids[:first] + ids[first + len(one) : last - len(two)] + ids[last + len(one) :]
    assert bytes(each for each in without if each < 256) == bytes(
        each for each in text.encode(normalise(turns), NOW) if each < 256
    )


def test_a_conversation_goes_on_without_dividing_its_pictures_again() -> None:
    seeing = ledger(family("chatml"), Senses(sees=True, ids_of=ids_of))
    turns = [Turn(Role.USER, "What is this?", media=(picture(),))]
    before = seeing.encode(normalise(turns), NOW)
    turns += [Turn(Role.ASSISTANT, "A fire."), Turn(Role.USER, "Warm?")]
    assert seeing.encode(normalise(turns), NOW)[: len(before)] == before
    # Another picture at the same place is another prompt.
    other = [replace(turns[0], media=(picture(2),)), *turns[1:]]
    ids = seeing.encode(normalise(other), NOW)
    assert places(ids, ids_of(picture(2))) and not places(ids, ids_of(picture()))


def test_a_message_may_be_a_picture_alone() -> None:
    (turn,) = normalise([Turn(Role.USER, "", media=(picture(),))])
    assert turn.media == (picture(),)
    one, two = picture(), picture(2)
    (merged,) = normalise([Turn(Role.USER, "", media=(one,)), Turn(Role.USER, "x", media=(two,))])
    assert merged.media == (one, two) and merged.content == "x"


def test_a_model_that_cannot_see_is_told_that_something_was_there() -> None:
    form = family("chatml")
    blind = ledger(form, Senses(hears=True, ids_of=ids_of))
    ids = blind.encode([Turn(Role.USER, "Hm?", media=(picture(), sound()))], NOW)
    spell = form.tokenizer().token_bytes
    said = b"".join(spell(each) for each in ids if each >= 0)
    assert b"[A picture stood here, which you cannot see.]\n\nHm?" in said
    assert places(ids, ids_of(sound()))


def info(**changes: object) -> ModelInfo:
    known = ModelInfo(
        name="tiny",
        architecture="x",
        num_parameters=1,
        quantization="",
        trained_context=1,
        num_bytes=1,
        kv_bytes_per_token=1,
        chat_template=None,
        bos_text="",
        eos_text="",
    )
    return replace(known, **changes)


def test_the_refusal_names_the_model_and_the_remedy() -> None:
    check_readable(info(reads_images=True), [MediaKind.IMAGE])
    with pytest.raises(UsageError, match="tiny cannot read pictures .there is no mmproj file"):
        check_readable(info(), [MediaKind.IMAGE])
    with pytest.raises(UsageError, match="cannot read sounds .its mmproj file is not for them"):
        check_readable(info(reads_images=True), [MediaKind.AUDIO])
    with pytest.raises(UsageError, match="^It counts in rows.$"):
        check_readable(info(media_refusal="It counts in rows."), [MediaKind.IMAGE])


def test_what_cannot_be_read_of_earlier_messages_is_said() -> None:
    shown = [picture(), picture(2), sound()]
    assert unread_notice(info(reads_images=True, reads_audio=True), shown) == ""
    assert "the 2 pictures and 1 sound of" in unread_notice(info(), shown)
    assert "the 1 sound of" in unread_notice(info(reads_images=True), shown)


@pytest.fixture(params=["mlp", "gemma3"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChatModel]:
    loaded = load_chat_model(seeing_config(tmp_path, request.param))
    yield loaded
    loaded.close()


async def answer(model: ChatModel, prompt: list[int]) -> tuple[str, int]:
    text, cached = "", 0
    with model.loaded.engine.submit(prompt, SHORT, RequestOptions()) as stream:
        async for output in stream:
            text += output.text
            if output.timings is not None:
                cached = output.timings.cached_tokens
    return text, cached


async def test_a_conversation_about_a_picture_is_read_once(model: ChatModel) -> None:
    turns = [Turn(Role.USER, "What is this?", media=(picture(),))]
    prompt = await model.prompt(turns, "", 0.0)
    said, cached = await answer(model, prompt)
    assert cached == 0
    turns += [Turn(Role.ASSISTANT, said or "x"), Turn(Role.USER, "Why?")]
    following = await model.prompt(turns, "", 0.0)
    _, cached = await answer(model, following)
    assert cached >= len(prompt) - 1
    prefix = await model.prefix(turns[:2], "", 0.0)
    assert min(prompt) < 0 <= prefix[-1]


async def test_stop_answers_while_a_picture_is_looked_at(model: ChatModel) -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()
    shown = picture(9)

    def load() -> bytes:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result(10)
        return shown.load()

    turns = [Turn(Role.USER, "What is this?", media=(replace(shown, load=load),))]
    prompt = await model.prompt(turns, "", 0.0)
    with model.loaded.engine.submit(prompt, SHORT) as stream:
        await asyncio.sleep(0.05)
        # Others are answered meanwhile.
        hello = await model.prompt([Turn(Role.USER, "Hello")], "", 0.0)
        await asyncio.wait_for(answer(model, hello), 5)
        stream.abort()
        last = await asyncio.wait_for(anext(aiter(stream)), 5)
        while last.finish_reason is None:
            last = await asyncio.wait_for(anext(aiter(stream)), 5)
        assert last.finish_reason.value == "abort"
    release.set()
