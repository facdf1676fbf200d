"""A damaged model file is one sentence, never the end of the process."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from engine.backends.llama_cpp.gguf_file import check_file
from engine.errors import InglenookError, ModelDamaged, ModelError, ModelNotFound
from tests.engine.backends.llama_cpp.tiny_model import write_tiny_model

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny.gguf")


def changed(tiny: Path, target: Path, old: bytes, new: bytes) -> Path:
    data = tiny.read_bytes()
    assert old in data and len(old) == len(new)
    target.write_bytes(data.replace(old, new, 1))
    return target


def test_a_sound_file_passes(tiny: Path) -> None:
    check_file(tiny)


@pytest.mark.parametrize(
    ("content", "error"),
    [(None, ModelNotFound), (b"", ModelDamaged), (b"GG", ModelDamaged), (b"PK\3\4", ModelDamaged)],
    ids=["missing", "empty", "shorter than its mark", "another kind"],
)
def test_what_is_no_model_is_named(
    tmp_path: Path, content: bytes | None, error: type[InglenookError]
) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=r"model\.gguf"):
        check_file(path)


def test_a_folder_and_a_pipe_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a file"):
        check_file(tmp_path)
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelError, match="is not a file"):
            check_file(tmp_path / "pipe")


def test_a_file_below_a_file_is_not_there(tiny: Path) -> None:
    with pytest.raises(ModelNotFound):
        check_file(tiny / "model.gguf")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b"<0x41>", b"<0x42>", "a word twice"),
        (b"<0x41>", b"<0y41>", "not every byte"),
        (b"<0x41>", b"\0<0x41", "not every byte"),
        (b".block_count\4\0\0\0\2", b".block_count\4\0\0\0\0", "0 layers"),
        (b".block_count\4\0\0\0\2\0", b".block_count\4\0\0\0\2\4", "1,026 layers"),
        (b"general.name\x08", b"general.name\x99", "breaks off"),
    ],
    ids=["twice", "no byte", "cut by a nul", "no layers", "too many layers", "unknown kind"],
)
def test_what_llama_cpp_would_abort_over_is_found_before(
    tiny: Path, tmp_path: Path, old: bytes, new: bytes, fault: str
) -> None:
    with pytest.raises(ModelDamaged, match=fault):
        check_file(changed(tiny, tmp_path / "changed.gguf", old, new))


CHILD = """
import sys
from pathlib import Path
from engine.backends.llama_cpp.backend import LlamaBackend
from engine.backends.llama_cpp.step_batch import Part
from engine.config import EngineConfig
from engine.errors import InglenookError

path = Path(sys.argv[1])
for line in sys.stdin:
    place, value = map(int, line.split())
    sound = path.read_bytes()
    path.write_bytes(sound[:place] + bytes([value]) + sound[place + 1 :])
    try:
        backend = LlamaBackend(EngineConfig(model_path=path, context_tokens=256, threads=1))
        backend.tokenizer.encode("Grüße, 世界!")
        backend.kv_memory.decode([Part(0, 0, [1, 5, 9], 1)])
        backend.close()
        print("runs", flush=True)
    except InglenookError as error:
        print("refused", error, flush=True)
    path.write_bytes(sound)
"""


def test_bytes_changed_at_random_in_the_metadata_end_no_process(tiny: Path, tmp_path: Path) -> None:
    """In a child process, so that a crash is a failure here and not the end of the tests."""
    choose = random.Random(4)
    target = tmp_path / "changed.gguf"
    target.write_bytes(tiny.read_bytes())
    size = tiny.read_bytes().index(b"blk.0.attn_norm") + 3000
    edits = [(choose.randrange(size), choose.choice([0, 255, *range(256)])) for _ in range(400)]
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(target)],
        input="".join(f"{place} {value}\n" for place, value in edits),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    answers = child.stdout.splitlines()
    assert child.returncode == 0, (edits[len(answers)], child.stderr[-1000:])
    assert len(answers) == len(edits)
    assert any(answer.startswith("refused") for answer in answers)
