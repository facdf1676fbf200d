"""Each reason for which a file cannot chat is one sentence with its figures and one remedy."""

import os
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.backends.llama_cpp.chat_file import check_chat_file
from engine.backends.llama_cpp.model import LlamaModel
from engine.errors import InglenookError, ModelDamaged, ModelError, ModelNotFound, ModelUnsupported
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf")


def small_file(path: Path, architecture: str, write: Callable[[gguf.GGUFWriter], None]) -> Path:
    """A file with one tensor and what `write` adds."""
    writer = gguf.GGUFWriter(path, architecture)
    write(writer)
    writer.add_tensor("a.weight", np.ones((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def split(tiny: Path, folder: Path) -> list[Path]:
    """The names of a model in two files; what is in them does not matter here."""
    parts = [folder / f"big-0000{number}-of-00002.gguf" for number in (1, 2)]
    for part in parts:
        part.write_bytes(tiny.read_bytes())
    return parts


def refused(path: Path, error: type[InglenookError]) -> str:
    """The sentence, which loading says as well."""
    with pytest.raises(error) as found:
        check_chat_file(path)
    with pytest.raises(error):
        LlamaModel(path)
    return str(found.value)


def test_a_whole_model_has_nothing_against_it(tiny: Path) -> None:
    (header,) = check_chat_file(tiny)
    assert header.architecture == "llama"


def test_a_missing_file(tmp_path: Path) -> None:
    words = refused(tmp_path / "gone.gguf", ModelNotFound)
    assert words.startswith("There is no model file at ") and words.endswith("bring it again.")


@pytest.mark.parametrize("content", [b"", b"<html>no model</html>"], ids=["empty", "a page"])
def test_what_is_no_gguf_says_its_size(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    words = refused(path, ModelDamaged)
    assert f"m.gguf is not a GGUF model ({len(content):,} bytes)" in words


def test_a_file_that_is_cut_off_says_how_much_is_there(tiny: Path, tmp_path: Path) -> None:
    data = tiny.read_bytes()
    path = tmp_path / "short.gguf"
    path.write_bytes(data[:-5000])
    words = refused(path, ModelDamaged)
    assert (
        f"short.gguf is cut off or damaged at {len(data) - 5000:,} bytes of {len(data):,}" in words
    )


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (4, "of version 4, and this app reads up to version 3: update the app"),
        (1, "of version 1, which is too old: bring a newer file"),
        (0x03000000, "of the other byte order: bring the usual, little-endian file"),
    ],
)
def test_another_version_of_the_form(tiny: Path, tmp_path: Path, version: int, words: str) -> None:
    data = tiny.read_bytes()
    path = tmp_path / "other.gguf"
    path.write_bytes(data[:4] + version.to_bytes(4, "little") + data[8:])
    assert words in refused(path, ModelUnsupported)


def test_an_unknown_architecture_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelUnsupported, match="cannot run here .unknown model architecture.*won"):
        LlamaModel(write_tiny_model(tmp_path / "new.gguf", "wonder"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.gguf")
    assert "x.gguf is not a file: choose another" in refused(tmp_path / "x.gguf", ModelError)


@pytest.mark.parametrize("tokens", [0, 2**31, 2**32 - 1])
def test_a_context_that_no_model_has_is_damage(tmp_path: Path, tokens: int) -> None:
    path = small_file(
        tmp_path / "m.gguf", "llama", lambda writer: writer.add_context_length(tokens)
    )
    words = refused(path, ModelDamaged)
    assert f"m.gguf is damaged (it says that its context holds {tokens} tokens" in words


def test_a_context_in_another_form_is_damage_as_well(tmp_path: Path) -> None:
    key = "llama.context_length"
    for number, write in enumerate(
        (
            lambda writer: writer.add_int32(key, -1),
            lambda writer: writer.add_float32(key, float("inf")),
            lambda writer: writer.add_string(key, "many"),
        )
    ):
        path = small_file(tmp_path / f"{number}.gguf", "llama", write)
        assert "is damaged (it says that its context" in refused(path, ModelDamaged)


def test_what_a_file_calls_its_kind_is_fit_to_be_shown(tmp_path: Path) -> None:
    path = small_file(tmp_path / "m.gguf", "x\x1b[31m\ny", lambda writer: None)
    (header,) = check_chat_file(path)
    assert header.architecture == "x\ufffd[31m\ufffdy"


def test_a_missing_part_is_named(tiny: Path, tmp_path: Path) -> None:
    first, second = split(tiny, tmp_path)
    check_chat_file(first)
    second.unlink()
    words = refused(first, ModelNotFound)
    assert "is the first of 2 files, and big-00002-of-00002.gguf is missing beside it" in words


def test_a_part_that_is_cut_off_is_named(tiny: Path, tmp_path: Path) -> None:
    first, second = split(tiny, tmp_path)
    second.write_bytes(tiny.read_bytes()[:-5000])
    assert second.name in refused(first, ModelDamaged)


def test_a_later_part_names_the_first(tiny: Path, tmp_path: Path) -> None:
    first, second = split(tiny, tmp_path)
    assert f"choose its first part, {first.name}" in refused(second, ModelUnsupported)


@pytest.mark.parametrize(
    ("architecture", "kind", "words"),
    [
        ("clip", "", "is a projector for pictures"),
        ("llama", "mmproj", "is a projector for pictures"),
        ("llama", "adapter", "is a LoRA adapter"),
        ("bert", "", "is a model for finding texts (bert) and cannot write"),
        ("qwen3", "", "is a model for finding texts (qwen3) and cannot write"),
    ],
)
def test_what_belongs_to_a_model_or_only_finds_texts(
    tmp_path: Path, architecture: str, kind: str, words: str
) -> None:
    def write(writer: gguf.GGUFWriter) -> None:
        if kind:
            writer.add_type(kind)
        if architecture == "qwen3":
            writer.add_causal_attention(False)

    sentence = refused(small_file(tmp_path / "m.gguf", architecture, write), ModelUnsupported)
    assert words in sentence and "choose a model for text generation" in sentence


def test_a_vocabulary_alone_is_called_that_and_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("an odd length, so that nothing is aligned at the end.")
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["a", "b", "c"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    words = "vocabulary.gguf has a vocabulary and no weights in it: choose a model"
    assert words in refused(path, ModelUnsupported)


def test_a_folder_of_safetensors_says_what_would_run_it(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    assert "choose a GGUF file of the same model" in refused(tmp_path, ModelUnsupported)


def test_no_permission(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the tests run as a user who may read everything."""
    path = tmp_path / "secret.gguf"
    path.write_bytes(tiny.read_bytes())
    opened = Path.open

    def refusing(self: Path, *arguments: object, **more: object) -> object:
        if self == path:
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return opened(self, *arguments, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refusing)
    words = refused(path, ModelError)
    assert "cannot be read (Permission denied): give your user the right to read it" in words
