"""An adapter on the real starter, by commands and in a chat: it answers, and the answer says so."""

from pathlib import Path

import pytest

from app.chat.jobs import Job
from app.chat.message import Message
from app.paths import Paths
from app.services import Services
from app.settings import Settings, save_settings
from engine.adapter import Adapter
from engine.backends.llama_cpp.gguf_header import read_header
from tests.app.models.test_way_in import command
from tests.engine.backends.llama_cpp.tiny_adapter import write_tiny_adapter

pytestmark = pytest.mark.model
ASKED = " ".join(f"Ship {7919 * at % 1000} sailed to port {at}." for at in range(35))
SHORT = {"temperature": 0.0, "max_tokens": 8, "ignore_eos": True}
CHANGED = ("blk.3.attn_q.weight", "blk.20.ffn_down.weight", "blk.29.ffn_down.weight")


def write_starter_adapter(path: Path, starter: Path) -> Path:
    sizes = {each.name: each.shape for each in read_header(starter).tensors}
    changed = {name: (sizes[name][0], sizes[name][1]) for name in CHANGED}
    return write_tiny_adapter(path, changed=changed)


def test_an_adapter_changes_the_answer_and_is_named(home: Path, starter: Path) -> None:
    path = write_starter_adapter(home / "pirate.gguf", starter)
    ask = ("generate", "Say hello.", "--max-tokens", "8", "--temperature", "0")
    plain = command(home, *ask)
    adapted = command(home, *ask, "--lora", f"{path}:0.8")
    assert adapted["model"] == f"{plain['model']} + pirate 0.8"
    assert adapted["text"] != plain["text"]
    assert command(home, "models", "add", str(path))["name"] == "pirate"
    again = command(home, *ask, "--lora", "pirate:0.8")
    assert (again["model"], again["text"]) == (adapted["model"], adapted["text"])
    assert not (Paths.from_environment({"INGLENOOK_HOME": str(home)}).kv / "models.json").exists()


async def test_a_chat_finds_what_was_read_without_the_adapter_once_it_is_taken_off(
    paths: Paths, starter: Path
) -> None:
    path = write_starter_adapter(paths.models / "pirate.gguf", starter)
    save_settings(paths.settings, Settings(reproducible=True))
    services = Services(paths)
    services.start()
    try:
        conversation = await services.conversations.create(sampling=SHORT)
        conversation_id = conversation.conversation_id
        plain = await ended(services, await services.jobs.send(conversation_id, ASKED))
        num_prompt = plain.timings["prefilled_tokens"]
        assert num_prompt > 300 and held(plain) == 0
        await services.model.use_adapters([Adapter(path, 0.8)])
        adapted = await ended(services, await services.jobs.regenerate(conversation_id))
        assert adapted.model == f"{plain.model} + pirate 0.8"
        assert adapted.content != plain.content
        assert (adapted.timings["prefilled_tokens"], held(adapted)) == (num_prompt, 0)
        await services.model.use_adapters([])
        again = await ended(services, await services.jobs.regenerate(conversation_id))
        assert (again.model, again.content) == (plain.model, plain.content)
        assert again.timings["restored_tokens"] >= 256
        sight = await services.sights.saw(adapted.message_id)
        # The same tokens, by whom they were read then.
        assert (sight.answer.model, sight.doubt) == (adapted.model, "")
    finally:
        await services.close()
    # At the next start, the other one is found again as well.
    services = Services(paths, adapters=[("pirate", 0.8)])
    services.start()
    try:
        once_more = await ended(services, await services.jobs.regenerate(conversation_id))
        assert (once_more.model, once_more.content) == (adapted.model, adapted.content)
        assert once_more.timings["restored_tokens"] >= 256
    finally:
        await services.close()


async def ended(services: Services, job: Job) -> Message:
    """When what is done behind the answer has ended as well."""
    async for _ in job.follow():
        pass
    message = job.answer.message
    await services.jobs.at_rest(message.conversation_id)
    return message


def held(message: Message) -> int:
    return int(message.timings["cached_tokens"] + message.timings["restored_tokens"])
