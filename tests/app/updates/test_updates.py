"""One question to where versions are published, and a sentence whatever comes back."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from app.models.connections import Connections
from app.updates import updates
from app.updates.updates import MOST_BYTES, Updates, published_at
from app.version import VERSION
from engine.errors import DownloadError
from tests.fakes_releases import FakeReleases, newer

Arrange = Callable[[FakeReleases], None]


async def refusal(looking: Updates, source: str) -> str:
    """The sentence; it says what to do after a colon, and nothing of how we are made."""
    with pytest.raises(DownloadError) as raised:
        await looking.look(source)
    sentence = str(raised.value)
    assert sentence.endswith(".") and ": " in sentence and "\n" not in sentence
    assert "Errno" not in sentence and "Traceback" not in sentence
    return sentence


async def test_it_is_asked_once_and_written_down(
    releases: FakeReleases, connections: Connections
) -> None:
    found = await Updates(connections, lambda: releases.url).look()
    assert found.is_newer and str(found.own) == VERSION
    assert found.url_of(found.archives[0]).startswith(f"{releases.url}/inglenook-99.0.0-")
    assert releases.asked == ["/inglenook/latest.json"]
    noted = [(each.host, each.why) for each in connections.all()]
    assert noted == [("127.0.0.1", "check for updates")]


@pytest.mark.parametrize("form", ["{}", "{}/", "{}/latest.json", " {}/ "])
async def test_an_address_may_be_given_in_every_usual_form(
    releases: FakeReleases, connections: Connections, form: str
) -> None:
    found = await Updates(connections).look(form.format(releases.url))
    assert found.address == releases.url
    assert releases.asked == ["/inglenook/latest.json"]


async def test_an_address_that_is_given_goes_before_the_builds_own(
    releases: FakeReleases, connections: Connections
) -> None:
    await Updates(connections, lambda: "https://elsewhere.example").look(releases.url)
    assert [each.host for each in connections.all()] == ["127.0.0.1"]


async def test_a_build_without_an_address_says_so_and_asks_nobody(connections: Connections) -> None:
    sentence = await refusal(Updates(connections, lambda: ""), "")
    assert "does not know where new versions are published" in sentence
    assert "`inglenook updates --from URL`" in sentence
    assert connections.all() == []


def published(folder: Path, *lines: str) -> None:
    made = folder / "inglenook-9.9.9.dist-info"
    made.mkdir()
    text = ["Metadata-Version: 2.4", "Name: inglenook", "Version: 9.9.9", *lines, ""]
    (made / "METADATA").write_text("\n".join(text))


def test_the_address_is_that_of_the_packages_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    source, place = "Project-URL: Source, https://e.org/s", "Project-URL: Releases, https://e.org/r"
    published(tmp_path, source, place)
    assert published_at() == "https://e.org/r"


def test_a_description_without_an_address_and_no_description_are_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        published(tmp_path)
        assert published_at() == ""
    monkeypatch.setattr("sys.path", [])
    monkeypatch.setattr("sys.meta_path", [])
    assert published_at() == ""


def answers(status: int) -> Arrange:
    return lambda releases: setattr(releases, "status", status)


def says(body: bytes) -> Arrange:
    return lambda releases: setattr(releases, "body", body)


def hands_on(to: str) -> Arrange:
    return lambda releases: releases.hands_on(to)


@pytest.mark.parametrize(
    ("arrange", "words"),
    [
        (answers(404), r"has nothing to read at http://127.0.0.1:\d+/inglenook/latest.json \(404"),
        (answers(403), r"\(403\)"),
        (answers(503), r"\(503\)"),
        (answers(204), r"\(204\)"),
        (answers(302), r"\(302\)"),
        (says(b"<html>Log in</html>"), "something else than JSON"),
        (says(b""), "something else than JSON"),
        (says(b"\xff\xfe\x00"), "something else than JSON"),
        (says(b"[" * 200_000), "something else than JSON"),
        (says(b"9" * 5_000), "something else than JSON"),
        (says(b"null"), "“archives” is missing"),
        (says(b'{"archives": []}'), "“version” is missing"),
        (lambda releases: releases.says(newer(version="x" * 30)), "Invalid version"),
        (lambda releases: releases.says(newer(date="0000-00-00")), "cannot be understood"),
        (hands_on("http://models.example/latest.json"), "not spoken to without encryption"),
        (hands_on("file:///etc/passwd"), "not spoken to without encryption"),
        (hands_on("ftp://127.0.0.1/latest.json"), "."),
        (hands_on("/inglenook/latest.json"), "hands on more than 6 times"),
        (hands_on("http://["), "."),
        (hands_on("https://[x/"), "."),
        (hands_on("//["), "."),
        (hands_on("http://%00/"), "."),
        (hands_on("javascript:alert(1)"), "."),
    ],
)
async def test_a_server_that_has_something_else_is_one_sentence(
    releases: FakeReleases, connections: Connections, arrange: Arrange, words: str
) -> None:
    arrange(releases)
    sentence = await refusal(Updates(connections, stall_s=5), releases.url)
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(sentence)
    assert {each.host for each in connections.all()} == {"127.0.0.1"}


async def test_another_place_on_the_way_is_followed_and_written_down(
    releases: FakeReleases, connections: Connections
) -> None:
    with FakeReleases().serving() as other:
        other.hands_on(f"{releases.url}/latest.json")
        found = await Updates(connections).look(other.url)
        assert found.is_newer and found.address == other.url
    assert len(connections.all()) == 2


async def test_a_server_that_falls_silent_is_left(
    releases: FakeReleases, connections: Connections
) -> None:
    releases.wrong = releases.stalls
    sentence = await refusal(Updates(connections, stall_s=0.2), releases.url)
    assert "did not answer in time" in sentence


async def test_a_server_that_never_ends_is_left(
    releases: FakeReleases, connections: Connections
) -> None:
    releases.wrong = releases.drips
    sentence = await refusal(Updates(connections, most_s=0.5), releases.url)
    assert "had not sent all of latest.json after" in sentence


async def test_of_a_hundred_megabytes_no_more_is_taken_than_is_allowed(
    releases: FakeReleases, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0

    class Counting(bytearray):
        def __iadd__(self, piece: bytes) -> "Counting":
            nonlocal taken
            taken += len(piece)
            super().__iadd__(piece)
            return self

    monkeypatch.setattr(updates, "bytearray", Counting, raising=False)
    releases.wrong = releases.floods
    sentence = await refusal(Updates(connections), releases.url)
    assert "sends more than 1 MB for latest.json" in sentence
    assert MOST_BYTES < taken < MOST_BYTES + 200_000


async def test_without_a_network_it_says_so(connections: Connections) -> None:
    with socket.socket() as held:
        # Bound and never listening: nobody can be reached there, and nobody else takes the port.
        held.bind(("127.0.0.1", 0))
        sentence = await refusal(Updates(connections), f"http://127.0.0.1:{held.getsockname()[1]}")
    assert "There is no connection to 127.0.0.1" in sentence


@pytest.mark.parametrize(
    "source", ["http://releases.example", "ftp://releases.example", "releases", "https://[x", "//"]
)
async def test_nobody_is_asked_without_encryption_or_at_what_is_no_address(
    connections: Connections, source: str
) -> None:
    await refusal(Updates(connections, stall_s=5), source)
    assert [each.host for each in connections.all() if "example" in each.host] == []
