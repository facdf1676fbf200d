"""What third-party libraries find in the environment when they are imported."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_sound_library_of_the_page_is_imported_where_there_is_no_path(tmp_path: Path) -> None:
    """As a service has it; `env -i` too. pydub raises KeyError there."""
    imported = subprocess.run(
        [
            sys.executable,
            "-c",
            "import pathlib; from app.web import environment;"
            f"environment.prepare(pathlib.Path({str(tmp_path)!r})); import pydub",
        ],
        cwd=ROOT,
        env={},
        capture_output=True,
        text=True,
    )
    assert imported.returncode == 0, imported.stderr
