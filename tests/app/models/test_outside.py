"""The door to other machines: proxies, redirects, encryption, and a list of all that was opened."""

from pathlib import Path

import httpx
import pytest

from app.models.connections import Connections
from app.models.outside import Outside
from engine.errors import DownloadEnded, DownloadError, HomeError
from tests.fakes_hub import FakeHub


@pytest.fixture
def connections(tmp_path: Path) -> Connections:
    return Connections(tmp_path / "connections", now=lambda: 5.0)


async def test_every_connection_is_written_down_with_its_reason(
    connections: Connections, hub: FakeHub
) -> None:
    await Outside(connections).get_json(f"{hub.url}/api/models?search=x", "a search")
    assert [(each.host, each.why) for each in connections.all()] == [("127.0.0.1", "a search")]


async def test_what_cannot_be_written_down_is_not_opened(tmp_path: Path, hub: FakeHub) -> None:
    with pytest.raises(HomeError, match="without it none is opened"):
        await Outside(Connections(tmp_path)).get_json(f"{hub.url}/api/models?search=x", "a search")
    assert hub.asked == []


async def test_the_proxy_of_the_environment_is_used_but_for_this_machine(
    connections: Connections, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own server as the proxy: it would see the request for another host."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    await Outside(connections).get_json(f"{hub.url}/api/models?search=x", "a search")
    with pytest.raises(DownloadError, match="^There is no connection to models.example: check"):
        await Outside(connections, 5).get_json("https://models.example/x", "a search")
    assert connections.all()[0].host == "models.example"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (httpx.ConnectError("[Errno -2] Name or service not known"), "There is no connection to"),
        (httpx.ConnectError("[Errno 101] Network is unreachable"), "There is no connection to"),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] x"), "a certificate that cannot be"),
        (httpx.WriteError("[Errno 32] Broken pipe"), r"cannot be spoken to \(Broken pipe\)"),
        (httpx.ProxyError("403 Forbidden"), r"through the proxy of the environment \(403 Forb"),
    ],
    ids=repr,
)
async def test_what_goes_wrong_below_is_said_in_words(
    connections: Connections, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(httpx.AsyncClient, "stream", fail)
    with pytest.raises(DownloadError, match=words) as raised:
        await Outside(connections).get_json("https://huggingface.co/x", "a search")
    assert "Errno" not in str(raised.value) and "huggingface.co" in str(raised.value)


async def test_no_other_machine_is_spoken_to_without_encryption(connections: Connections) -> None:
    with pytest.raises(DownloadEnded, match="is not spoken to without encryption"):
        await Outside(connections).get_json("http://models.example/", "a search")
    assert connections.all() == []


async def test_redirects_without_end_are_left(connections: Connections, hub: FakeHub) -> None:
    hub.files["a/b"] = {"m.gguf": b""}
    hub.wrong.redirect = f"{hub.url}/a/b/resolve/main/m.gguf"
    with pytest.raises(DownloadEnded, match="hands on more than 6 times"):
        await Outside(connections).get_json(hub.wrong.redirect, "a file")
    assert len(connections.all()) == 6


@pytest.mark.parametrize("to", ["http://[", "https://[x/", "//[", "file:///etc/passwd", "data:,x"])
async def test_redirects_to_what_is_no_address_are_one_sentence(
    connections: Connections, hub: FakeHub, to: str
) -> None:
    hub.files["a/b"] = {"m.gguf": b""}
    hub.wrong.redirect = to
    with pytest.raises(DownloadError):
        await Outside(connections, 5).get_json(f"{hub.url}/a/b/resolve/main/m.gguf", "a file")
    assert {each.host for each in connections.all()} == {"127.0.0.1"}


@pytest.mark.parametrize("url", ["no address", "https://", "ftp://models.example/x", "https://[x/"])
async def test_what_is_no_address_is_one_sentence(connections: Connections, url: str) -> None:
    with pytest.raises(DownloadError):
        await Outside(connections, 5).get_json(url, "a search")
