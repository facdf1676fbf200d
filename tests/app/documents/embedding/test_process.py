import asyncio
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from app.documents.embedding.child import NICENESS
from app.documents.embedding.embedder import Prefixes
from app.documents.embedding.minilm import convert
from app.documents.embedding.process import EmbeddingProcess
from app.documents.process import BEHIND
from engine.backends.llama_cpp.embedding_model import EmbeddingModel
from engine.errors import EngineError, ModelUnsupported
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model
from tests.fake_embedder import COMMAND, WIDTH, asked, write_fake_model
from tests.tiny_bert import write_tiny_package
from tests.waiting import until


def process_for(path: Path, **values: object) -> EmbeddingProcess:
    return EmbeddingProcess(path, command=COMMAND, **values)  # type: ignore[arg-type]


async def test_a_text_comes_back_as_a_vector(tmp_path: Path) -> None:
    process = process_for(write_fake_model(tmp_path / "a.json"))
    first = await process.embed("the river", is_query=False)
    assert first.shape == (WIDTH,)
    np.testing.assert_array_equal(first, await process.embed("the river", is_query=True))
    assert process.num_started == 1
    await process.close()


async def test_what_goes_before_a_text_is_that_of_the_model(tmp_path: Path) -> None:
    path = write_fake_model(tmp_path / "multilingual-e5-small.json", wants_normal=True)
    process = process_for(path)
    await process.embed("\uff4fne", is_query=True)
    await process.embed("two", is_query=False)
    assert asked(path) == ["query: one", "passage: two"]
    await process.close()
    chosen = process_for(path, prefixes=Prefixes("Q ", ""))
    await chosen.embed("three", is_query=True)
    assert asked(path)[-1] == "Q three"
    await chosen.close()


async def test_a_process_that_dies_is_followed_by_another(tmp_path: Path) -> None:
    process = process_for(write_fake_model(tmp_path / "a.json"))
    await process.embed("DIE ONCE", is_query=False)
    assert process.num_started == 2
    await process.close()


async def test_a_process_that_nobody_asks_ends_and_the_next_text_starts_another(
    tmp_path: Path,
) -> None:
    process = process_for(write_fake_model(tmp_path / "a.json"), rest_s=0.01)
    first = await process.embed("the river", is_query=False)
    await until(lambda: process._process is None)
    np.testing.assert_array_equal(first, await process.embed("the river", is_query=False))
    assert process.num_started == 2 and process.known is not None
    await process.close()


async def test_a_process_that_is_asked_again_and_again_does_not_end(tmp_path: Path) -> None:
    process = process_for(write_fake_model(tmp_path / "a.json", text_s=0.02), rest_s=0.01)
    waiting = [process.embed(f"text {number}", is_query=False) for number in range(5)]
    assert len(await asyncio.gather(*waiting)) == 5
    assert process.num_started == 1
    await process.close()
    assert [task for task in asyncio.all_tasks() if "Rest" in repr(task)] == []


async def test_a_text_that_ends_two_processes_is_given_up(tmp_path: Path) -> None:
    process = process_for(write_fake_model(tmp_path / "a.json"))
    with pytest.raises(EngineError, match="twice"):
        await process.embed("DIE", is_query=False)
    assert (await process.embed("live", is_query=False)).shape == (WIDTH,)
    await process.close()


async def test_a_text_that_is_refused_ends_nothing(tmp_path: Path) -> None:
    process = process_for(write_fake_model(tmp_path / "a.json"))
    with pytest.raises(EngineError, match="refused"):
        await process.embed("REFUSE", is_query=False)
    await process.embed("fine", is_query=False)
    assert process.num_started == 1
    await process.close()


async def test_a_model_that_is_refused_says_why(tmp_path: Path) -> None:
    process = process_for(write_fake_model(tmp_path / "a.json", refused="a.json is a chat model."))
    with pytest.raises(ModelUnsupported, match="is a chat model"):
        await process.embedder()
    await process.close()


async def test_facts_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    process = process_for(write_fake_model(tmp_path / "a.json", width=10**9))
    with pytest.raises(ModelUnsupported, match="no sense"):
        await process.embedder()
    await process.close()


async def test_an_answer_nobody_waits_for_is_no_answer_to_the_next_text(tmp_path: Path) -> None:
    path = write_fake_model(tmp_path / "a.json", text_s=0.2)
    process = process_for(path)
    await process.embedder()
    waiting = asyncio.create_task(process.embed("the river", is_query=False))
    await asyncio.sleep(0.05)
    waiting.cancel()
    other = await process.embed("other words", is_query=False)
    again = await process.embed("other words", is_query=False)
    np.testing.assert_array_equal(other, again)
    await process.close()


async def test_a_model_that_was_replaced_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    path = write_fake_model(tmp_path / "a.json")
    process = process_for(path)
    await process.embedder()
    await process.close()
    write_fake_model(path, name="another")
    with pytest.raises(ModelUnsupported, match="replaced"):
        await process.embed("one", is_query=False)
    await process.close()


async def test_the_real_process_computes_as_the_model_does_here(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    convert(write_tiny_package(tmp_path / "tiny"), path)
    process = EmbeddingProcess(path)
    embedder = await process.embedder()
    assert (embedder.width, embedder.pooling, embedder.languages) == (64, "mean", ("en",))
    model = EmbeddingModel(path)
    for is_query in (True, False):
        vector = await process.embed("the house of bread", is_query=is_query)
        np.testing.assert_allclose(vector, model.embed("the house of bread"), atol=1e-6)
    model.close()
    await process.close()


@pytest.mark.skipif(sys.platform != "linux", reason="there alone a thread has its own niceness")
async def test_passages_stand_further_behind_than_questions(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    convert(write_tiny_package(tmp_path / "tiny"), path)
    process = EmbeddingProcess(path)
    await process.embedder()
    assert process._process is not None
    folder = Path(f"/proc/{process._process._process.pid}/task")
    stats = [(each / "stat").read_text().rpartition(")")[2].split() for each in folder.iterdir()]
    own = psutil.Process().nice()
    behind = min(19, own + BEHIND)
    assert {int(stat[16]) for stat in stats} == {behind, min(19, behind + NICENESS)}
    await process.close()


async def test_the_real_process_refuses_a_chat_model(tmp_path: Path) -> None:
    process = EmbeddingProcess(write_tiny_model(tmp_path / "chat.gguf"))
    with pytest.raises(ModelUnsupported, match="chat.gguf is no embedding model"):
        await process.embedder()
    await process.close()
