"""Models of other programs are found where those keep them."""

import json
import os
from pathlib import Path

import pytest

from app.models.elsewhere import find_elsewhere


def file_at(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF")
    return path


PLACES = {
    "LM Studio": ".lmstudio/models/someone/Small-GGUF/Small-Q4_K_M.gguf",
    "Hugging Face": ".cache/huggingface/hub/models--a--b/snapshots/0123/Small-Q8_0.gguf",
    "GPT4All": ".local/share/nomic.ai/GPT4All/Small-Q4_0.gguf",
    "llama.cpp": ".cache/llama.cpp/a_b_Small.gguf",
}


@pytest.mark.parametrize("program", PLACES)
def test_a_file_of_a_program_is_found(tmp_path: Path, program: str) -> None:
    path = file_at(tmp_path / PLACES[program])
    (found,) = find_elsewhere(tmp_path, {})
    assert (found.program, found.path, found.name) == (program, path, path.stem)


def test_jan_calls_every_file_the_same_and_its_folder_tells(tmp_path: Path) -> None:
    file_at(tmp_path / ".local/share/Jan/data/llamacpp/models/Qwen3-4B/model.gguf")
    (found,) = find_elsewhere(tmp_path, {})
    assert (found.program, found.name) == ("Jan", "Qwen3-4B")


def test_a_tag_of_ollama_leads_to_its_blob(tmp_path: Path) -> None:
    root = tmp_path / ".ollama/models"
    blob = file_at(root / "blobs/sha256-abc")
    manifest = root / "manifests/registry.example/library/smollm2/135m"
    manifest.parent.mkdir(parents=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:def"},
        {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:abc"},
    ]
    manifest.write_text(json.dumps({"layers": layers}))
    (manifest.parent / "broken").write_text("{")
    (manifest.parent / "gone").write_text(json.dumps({"layers": layers}).replace("abc", "999"))
    (found,) = find_elsewhere(tmp_path, {})
    assert (found.name, found.path, found.program) == ("smollm2:135m", blob, "Ollama")


def test_the_variables_of_these_programs_count(tmp_path: Path) -> None:
    file_at(tmp_path / "mine/x.gguf")
    file_at(tmp_path / ".cache/llama.cpp/usual.gguf")
    found = find_elsewhere(tmp_path, {"LLAMA_CACHE": str(tmp_path / "mine")})
    assert [each.name for each in found] == ["x"]


def test_projectors_later_parts_and_files_on_their_way_are_no_models(tmp_path: Path) -> None:
    folder = tmp_path / ".lmstudio/models/a/b"
    for name in ("mmproj-x.gguf", "x-00002-of-00002.gguf", "x.gguf.part", "readme.txt"):
        file_at(folder / name)
    assert find_elsewhere(tmp_path, {}) == []
    file_at(folder / "x-00001-of-00002.gguf")
    assert [each.name for each in find_elsewhere(tmp_path, {})] == ["x"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_no_file_is_no_model(tmp_path: Path) -> None:
    file_at(tmp_path / ".cache/llama.cpp/a.gguf")
    os.mkfifo(tmp_path / ".cache/llama.cpp/b.gguf")
    assert [each.name for each in find_elsewhere(tmp_path, {})] == ["a"]
