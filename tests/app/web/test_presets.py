"""A preset as a file that can be given to others."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest
from fastapi import FastAPI

from app.presets.preset import Preset, read_preset_file
from app.presets.store import Presets
from app.web.presets import presets_router


@pytest.fixture
def presets(tmp_path: Path) -> Presets:
    return Presets(tmp_path / "presets.json")


@pytest.fixture
async def client(presets: Presets) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    app.include_router(presets_router(presets))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test/_app") as it:
        yield it


async def test_a_saved_one_can_be_read_again(presets: Presets, client: httpx.AsyncClient) -> None:
    preset = presets.save(Preset(name="a/b: é", sampling={"stop": ["</script>"]}))
    reply = await client.get("/presets", params={"name": "a/b: é"})
    assert read_preset_file(reply.text) == preset
    disposition = unquote(reply.headers["content-disposition"])
    assert disposition == "attachment; filename*=UTF-8''a b é.preset.json"


async def test_a_given_one_too(client: httpx.AsyncClient) -> None:
    reply = await client.get("/presets", params={"name": "precise"})
    assert read_preset_file(reply.text).params.temperature == 0.0


async def test_one_that_is_gone_is_a_sentence(client: httpx.AsyncClient) -> None:
    reply = await client.get("/presets", params={"name": "gone"})
    assert reply.status_code == 404 and "There is no preset" in reply.text
