"""Conversations about pictures from end to end: stored, looked at once, and kept when the model
changes."""

import asyncio
import io
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from app.chat.message import Message, MessageState
from app.media.attachment import Attachment, attachment_of
from app.paths import Paths
from app.services import Services
from engine.errors import UsageError
from engine.media import MediaKind
from tests.engine.backends.llama_cpp.seeing import Watched
from tests.engine.backends.llama_cpp.tiny_mmproj import write_tiny_mmproj
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model

SHORT = {"temperature": 0.0, "max_tokens": 8}


def shot(colour: str = "red") -> Attachment:
    buffer = io.BytesIO()
    Image.new("RGB", (60, 40), colour).save(buffer, "PNG")
    return attachment_of(buffer.getvalue(), MediaKind.IMAGE, f"{colour}.png")


def model_in(folder: Path) -> Path:
    write_tiny_mmproj(folder / "mmproj-tiny.gguf", "mlp")
    return write_tiny_model(folder / "tiny.gguf")


async def begun(paths: Paths, model: Path) -> Services:
    services = Services(paths, str(model))
    services.save_settings(replace(services.settings, automatic_titles=False))
    services.start()
    await services.chat_model()
    return services


async def asked(services: Services, conversation_id: str, text: str, *shown: Attachment) -> Message:
    job = await services.jobs.send(conversation_id, text, shown)
    async for answer in job.follow():
        last = answer
    await services.jobs.at_rest(conversation_id)
    return last.message


def looks(services: Services) -> Watched:
    """From now on."""
    model = services.loaded_model
    assert model is not None
    backend = model.loaded.engine._engine._backend
    return Watched(backend)  # type: ignore[arg-type]


async def test_a_picture_is_stored_first_and_looked_at_once_after_a_restart_too(
    paths: Paths, tmp_path: Path
) -> None:
    model = model_in(tmp_path)
    services = await begun(paths, model)
    await services.chat_model()
    watched = looks(services)
    made = await services.conversations.create(sampling=SHORT)
    first = await asked(services, made.conversation_id, "What is this?", shot())
    assert first.state is MessageState.DONE and first.notice == ""
    second = await asked(services, made.conversation_id, "Why?")
    assert watched.num_looks == 1
    assert second.timings["cached_tokens"] > first.timings["prefilled_tokens"] - 2
    saw = await services.sights.saw(second.message_id)
    assert saw.doubt == "" and any("64 places of a picture" in s.text for s in saw.stretches)
    fill = await services.sights.fill(made.conversation_id, "", attachments=[shot("blue")])
    assert fill is not None and fill.num_typed >= 64
    # What the model has read goes to the disk a little at a time.
    await asyncio.sleep(0.5)
    await services.close()

    services = await begun(paths, model)
    await services.chat_model()
    watched = looks(services)
    third = await asked(services, made.conversation_id, "And now?")
    assert watched.num_looks == 0
    assert third.timings["restored_from"] == "disk"
    assert third.timings["restored_tokens"] > 64
    await services.close()


async def test_a_model_that_sees_nothing_says_what_it_was_not_shown(
    paths: Paths, tmp_path: Path
) -> None:
    services = await begun(paths, model_in(tmp_path))
    made = await services.conversations.create(sampling=SHORT)
    await asked(services, made.conversation_id, "What is this?", shot())
    (tmp_path / "blind").mkdir()
    blind = write_tiny_model(tmp_path / "blind" / "blind.gguf")
    await services.model.use(blind)
    assert not services.senses.sees
    answer = await asked(services, made.conversation_id, "And that?")
    assert answer.notice.startswith("blind cannot read the 1 picture of earlier messages")
    with pytest.raises(UsageError, match="blind cannot read pictures"):
        await services.jobs.send(made.conversation_id, "This?", [shot("blue")])
    # Nothing of the refused message is stored, and what was there is there still.
    messages = await services.conversations.messages(made.conversation_id)
    assert [each.content for each in messages if each.attachments] == ["What is this?"]
    await services.model.use(tmp_path / "tiny.gguf")
    answer = await asked(services, made.conversation_id, "Look again.")
    assert answer.notice == "" and services.senses.sees
    await services.close()
