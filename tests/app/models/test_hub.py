"""Hugging Face as it answers: names, files, sizes and sums; and what is no such answer."""

from pathlib import Path

import pytest

from app.models.connections import Connections
from app.models.hub import Hub, Offer, RemoteFile, chosen_offer, endpoint, grouped, usual_mmproj
from app.models.outside import Outside
from engine.errors import DownloadError, UsageError
from tests.fakes_hub import REVISION, FakeHub

REPO = "someone/Small-GGUF"


@pytest.fixture
def asked(hub: FakeHub, tmp_path: Path) -> Hub:
    return Hub(Outside(Connections(tmp_path / "connections"), stall_s=5))


def offer(quantization: str, size: int = 1) -> Offer:
    file = RemoteFile(f"m-{quantization}.gguf", "https://x/", size, "")
    return Offer(REPO, quantization, (file,))


async def test_a_search_gives_names_with_their_licence(asked: Hub, hub: FakeHub) -> None:
    hub.files |= {REPO: {}, "other/thing": {}}
    (found,) = await asked.search("  small  ")
    assert (found.repo, found.licence, found.num_downloads) == (REPO, "apache-2.0", 7)
    assert not found.is_gated


async def test_files_come_with_size_sum_and_a_pinned_version(asked: Hub, hub: FakeHub) -> None:
    hub.files[REPO] = {
        "Small-Q8_0.gguf": b"12345678",
        "Small-Q4_K_M.gguf": b"1234",
        "mmproj-Small-f16.gguf": b"1",
        "Small.imatrix.gguf": b"1",
    }
    four, eight = await asked.offers(REPO)
    assert (four.quantization, eight.quantization) == ("Q4_K_M", "Q8_0")
    # With what each of them sees by.
    assert (four.num_bytes, eight.num_bytes) == (4 + 1, 8 + 1)
    file, mmproj = four.files
    assert mmproj.name == "mmproj-Small-f16.gguf"
    assert len(file.sha256) == 64
    assert file.url == f"{hub.url}/{REPO}/resolve/{REVISION}/Small-Q4_K_M.gguf"


async def test_a_name_that_is_not_there_is_one_sentence(asked: Hub) -> None:
    with pytest.raises(DownloadError, match="has nothing under this name .404."):
        await asked.offers("no/body")
    for name in ("nobody", "a/b/c", "../../etc", "a b/c"):
        with pytest.raises(UsageError, match="is no name at Hugging Face"):
            await asked.offers(name)


@pytest.mark.parametrize(
    "answer",
    [
        *(b"<html>log in</html>", b"[]", b'{"siblings": 3}', b"7", b'"x"'),
        *(
            b'{"siblings": [{"rfilename": "m.gguf", "size": %s}]}' % size
            for size in (b"1e400", b"Infinity", b"NaN", b"1" + b"0" * 300, b'"many"')
        ),
    ],
    ids=lambda answer: answer[:60].decode(),
)
async def test_another_answer_than_the_hubs_is_one_sentence(
    asked: Hub, hub: FakeHub, answer: bytes
) -> None:
    hub.files[REPO], hub.wrong.answer = {}, answer
    with pytest.raises(DownloadError, match="not what Hugging Face answers|else than JSON"):
        await asked.offers(REPO)


async def test_a_size_below_nothing_is_not_known(asked: Hub, hub: FakeHub) -> None:
    hub.files[REPO] = {}
    hub.wrong.answer = b'{"siblings": [{"rfilename": "m.gguf", "size": -5}]}'
    (offer,) = await asked.offers(REPO)
    assert offer.num_bytes == 0


async def test_entries_that_are_no_models_are_left_out(asked: Hub, hub: FakeHub) -> None:
    hub.wrong.answer = (
        b'[7, {"id": "a/b"}, {"id": "../c"}, {"id": 3}, {"tags": 1},'
        b' {"id": "a/d", "downloads": 1e400}, {"id": "a/e", "likes": Infinity}]'
    )
    assert [each.repo for each in await asked.search("x")] == ["a/b"]


def test_another_address_can_be_named() -> None:
    assert endpoint({}) == "https://huggingface.co"
    assert endpoint({"HF_ENDPOINT": "https://mirror.example/"}) == "https://mirror.example"


def test_of_several_multimodal_parts_the_usual_one_comes_along() -> None:
    names = ["mmproj-F32.gguf", "mmproj-BF16.gguf", "x/mmproj-F16.gguf", "m-Q8_0.gguf"]
    files = [RemoteFile(name, "https://x/", 1, "") for name in names]
    assert usual_mmproj(files) is files[2]
    assert usual_mmproj(files[:1]) is files[0]
    assert usual_mmproj(files[3:]) is None


def test_parts_of_one_model_are_one_offer_and_lost_ones_are_none() -> None:
    def part(number: int, stem: str = "big-Q8_0") -> RemoteFile:
        return RemoteFile(f"x/{stem}-0000{number}-of-00002.gguf", "https://x/", 5, "")

    (found,) = grouped(REPO, [part(2), part(1), part(1, "other-Q4_0")])
    assert [file.name[-9:] for file in found.files] == ["0002.gguf", "0002.gguf"]
    assert (found.num_bytes, found.quantization) == (10, "Q8_0")


def test_without_a_wish_the_usual_size_is_taken() -> None:
    offers = [offer("Q2_K"), offer("Q4_0"), offer("Q4_K_M"), offer("Q8_0")]
    assert chosen_offer(offers, "").quantization == "Q4_K_M"
    assert chosen_offer(offers[:2], "").quantization == "Q4_0"
    assert chosen_offer(offers, "q8_0").quantization == "Q8_0"
    assert chosen_offer(offers, "m-Q2_K.gguf").quantization == "Q2_K"
    with pytest.raises(UsageError, match="has no Q6_K; it has Q2_K, Q4_0, Q4_K_M, Q8_0"):
        chosen_offer(offers, "Q6_K")
