"""Hugging Face, as far as models in GGUF files are concerned: search, and the files of one name.

Its interface is public: huggingface.co/docs/hub/api. `HF_ENDPOINT` names another address, such as
a mirror. Sizes and SHA-256 sums are those it tells, so that what comes can be checked.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from app.models.outside import Outside
from app.models.quantizations import quantization_of
from engine.errors import DownloadError, UsageError

ENDPOINT = "https://huggingface.co"
MOST_FOUND = 30
LARGEST_FILE = 2**50
_REPO = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)
_PART = re.compile(r"-(\d{5})-of-(\d{5})(?=\.gguf$)", re.IGNORECASE)
_COMPANION = re.compile(r"mmproj|imatrix|(?:^|[-_.])lora(?:[-_.]|$)", re.IGNORECASE)
_MMPROJ = re.compile("mmproj", re.IGNORECASE)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FoundRepo:
    """One name that a search found. `licence` is what it says of itself, or empty."""

    repo: str
    num_downloads: int
    num_likes: int
    licence: str
    is_gated: bool


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file. `num_bytes` 0: its size is not told. `sha256` empty: nor is its sum, and less can
    be checked."""

    name: str
    url: str
    num_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A model that can be downloaded: one file, or all its parts in their order, and with them what
    it reads pictures or sounds with."""

    repo: str
    quantization: str
    files: tuple[RemoteFile, ...]
    has_mmproj: bool = False
    """The last of the files is the model's multimodal part."""

    @property
    def num_bytes(self) -> int:
        return sum(each.num_bytes for each in self.files)


def endpoint(environment: Mapping[str, str] = os.environ) -> str:
    return (environment.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")


class Hub:
    """Asks only when it is called. Owned by the event loop."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    async def search(self, text: str) -> list[FoundRepo]:
        """The most downloaded names with GGUF files. Raises DownloadError."""
        words = " ".join(text.split())
        if not words:
            raise UsageError("There is nothing to search for: give a name, or a part of one.")
        query = f"search={quote(words)}&filter=gguf&sort=downloads&direction=-1&limit={MOST_FOUND}"
        url = f"{endpoint()}/api/models?{query}"
        answer = await self._outside.get_json(url, f"search for “{words}”")
        if not isinstance(answer, list):
            raise _strange(url)
        return [repo for each in answer if (repo := _repo_of(each)) is not None]

    async def offers(self, repo: str) -> list[Offer]:
        """What can be downloaded under a name, the smallest first. Raises DownloadError."""
        if not _REPO.fullmatch(repo):
            raise UsageError(f"{repo!r} is no name at Hugging Face: they have the form OWNER/NAME.")
        url = f"{endpoint()}/api/models/{repo}?blobs=true"
        answer = await self._outside.get_json(url, f"the files of {repo}")
        try:
            revision = str(answer.get("sha") or "main")
            files = [
                _file_of(repo, revision, each)
                for each in answer["siblings"]
                if str(each["rfilename"]).lower().endswith(".gguf")
            ]
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise _strange(url) from error
        offers = grouped(repo, (each for each in files if not _COMPANION.search(each.name)))
        mmproj = usual_mmproj(files)
        if mmproj is not None:
            offers = [
                replace(each, files=(*each.files, mmproj), has_mmproj=True) for each in offers
            ]
        if not offers:
            raise DownloadError(f"{repo} has no GGUF file that can be used: choose another name.")
        return offers


def usual_mmproj(files: Iterable[RemoteFile]) -> RemoteFile | None:
    """The multimodal part that goes with all models of a name; None: they read text alone."""
    found = [each for each in files if _MMPROJ.search(each.name)]
    for usual in ("F16", "BF16", "Q8_0", "F32"):
        for each in found:
            if quantization_of(each.name).upper() == usual:
                return each
    return found[0] if found else None


def grouped(repo: str, files: Iterable[RemoteFile]) -> list[Offer]:
    """Files that are parts of one model belong together; where one is missing, none is offered."""
    together: dict[str, dict[int, RemoteFile]] = {}
    counts: dict[str, int] = {}
    for file in files:
        found = _PART.search(file.name)
        stem = file.name if found is None else _PART.sub("", file.name)
        number, counts[stem] = (1, 1) if found is None else (int(found[1]), int(found[2]))
        together.setdefault(stem, {})[number] = file
    offers = [
        Offer(repo, quantization_of(stem), tuple(parts[number] for number in sorted(parts)))
        for stem, parts in together.items()
        if sorted(parts) == list(range(1, counts[stem] + 1))
    ]
    return sorted(offers, key=lambda offer: offer.num_bytes)


def chosen_offer(offers: list[Offer], wanted: str) -> Offer:
    """The one of this quantisation or file name; without a wish a usual one. Raises UsageError."""
    if not wanted:
        for usual in ("Q4_K_M", "Q4_K_S", "Q5_K_M", "Q4_0", "Q8_0"):
            for offer in offers:
                if offer.quantization == usual:
                    return offer
        return offers[0]
    for offer in offers:
        if wanted.upper() == offer.quantization or wanted == offer.files[0].name:
            return offer
    known = ", ".join(offer.quantization or offer.files[0].name for offer in offers)
    raise UsageError(f"{offers[0].repo} has no {wanted}; it has {known}.")


def _repo_of(value: Any) -> FoundRepo | None:
    try:
        tags = [str(tag) for tag in value.get("tags") or ()]
        licence = next((tag[8:] for tag in tags if tag.startswith("license:")), "")
        repo = str(value.get("id") or value["modelId"])
        downloads, likes = int(value.get("downloads") or 0), int(value.get("likes") or 0)
        gated = bool(value.get("gated"))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None
    return FoundRepo(repo, downloads, likes, licence, gated) if _REPO.fullmatch(repo) else None


def _file_of(repo: str, revision: str, value: Any) -> RemoteFile:
    """Raises KeyError, TypeError, ValueError or OverflowError for what is none."""
    name = str(value["rfilename"])
    lfs = value.get("lfs") or {}
    sha256 = str(lfs.get("sha256") or lfs.get("oid") or "").removeprefix("sha256:").lower()
    num_bytes = max(0, int(value.get("size") or lfs.get("size") or 0))
    if num_bytes > LARGEST_FILE:
        raise ValueError(f"no file has {num_bytes} bytes")
    url = f"{endpoint()}/{repo}/resolve/{quote(revision)}/{quote(name)}"
    return RemoteFile(name, url, num_bytes, sha256 if _SHA256.fullmatch(sha256) else "")


def _strange(url: str) -> DownloadError:
    return DownloadError(
        f"What came from {url.partition('?')[0]} is not what Hugging Face answers: check"
        " HF_ENDPOINT or try again later."
    )
