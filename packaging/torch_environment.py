"""Makes .venv/torch: over the environment of the app another one with torch, for the tests of it.

The app and its own tests never see torch, as most people who run it have none. Its build for
processors alone is asked for by name, because pip would take the one for NVIDIA's cards, which
fetches gigabytes. Where there is none for this Python, the tests are left out, and that is said.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WANTED = ROOT / "packaging" / "requirements" / "torch.txt"
PROCESSOR_INDEX = "https://download.pytorch.org/whl/cpu"


class TorchEnvironment:
    """The folder `torch` inside of an environment, whose packages it sees."""

    def __init__(self, above: Path) -> None:
        self._above = above
        self._folder = above / "torch"
        self.program = self._folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        self._stamp = self._folder / "installed"
        self.log = above / "torch.log"

    @property
    def is_there(self) -> bool:
        return self._stamp.exists() and self._stamp.read_text() == self._wanted()

    def bring(self) -> bool:
        """False: there is no torch for this Python where pip looks, and no folder."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        self._make()
        torch, *_ = (line for line in WANTED.read_text().splitlines() if line.startswith("torch=="))
        build = torch if sys.platform == "darwin" else f"{torch}+cpu"
        public = ["--index-url", PROCESSOR_INDEX, "--retries", "1", "--timeout", "15"]
        is_found = self._pip(build) or self._pip(build, "--no-deps", *public)
        if not (is_found and self._pip("-r", str(WANTED))):
            shutil.rmtree(self._folder)
            return False
        self._stamp.write_text(self._wanted())
        return True

    def _wanted(self) -> str:
        # A moved folder counts: the file that leads to the packages above holds its path.
        return hashlib.sha256(WANTED.read_bytes() + str(self._above).encode()).hexdigest()

    def _make(self) -> None:
        made = [sys.executable, "-m", "venv", "--without-pip", str(self._folder)]
        subprocess.run(made, check=True)
        places = [
            Path(self._ask(program, "import sysconfig; print(sysconfig.get_path('purelib'))"))
            for program in (Path(sys.executable), self.program)
        ]
        (places[1] / "above.pth").write_text(f"{places[0]}\n", encoding="utf-8")

    def _pip(self, *arguments: str) -> bool:
        command = [sys.executable, "-m", "pip", "--python", str(self.program), "install"]
        command += ["--no-color", "--progress-bar=off", "--no-input", *arguments]
        with self.log.open("a", encoding="utf-8") as log:
            return subprocess.run(command, stdout=log, stderr=log).returncode == 0

    @staticmethod
    def _ask(program: Path, question: str) -> str:
        asked = subprocess.run(
            [str(program), "-c", question], capture_output=True, text=True, check=True
        )
        return asked.stdout.strip()


def main() -> int:
    environment = TorchEnvironment(Path(sys.prefix))
    if environment.is_there:
        return 0
    print("Fetching torch, 190 MB, for the tests of its backend, about a minute ...", flush=True)
    if not environment.bring():
        print(
            "There is no torch for this Python where pip looks, so the tests of the torch backend"
            f" are left out: {environment.log} says more.",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
