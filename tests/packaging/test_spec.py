"""The one spec, as it would be evaluated on each system."""

import json
import plistlib
import sys
from pathlib import Path
from typing import Any

import bundle
import pytest

SPEC = bundle.ROOT / "packaging" / "inglenook.spec"


class Step:
    """What PyInstaller's steps give back, and what they were asked for."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.given, self.named = given, named
        self.pure = [("app.cli", "/somewhere/app/cli.py", "PYMODULE")]
        self.scripts: list[Any] = []
        self.binaries = [("llama_cpp/lib/libllama.so", "/somewhere/libllama.so", "BINARY")]
        self.datas: list[Any] = []


def evaluate(platform: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Step]]:
    shipped = bundle.shipped()
    monkeypatch.setattr(bundle, "shipped", lambda: shipped)
    monkeypatch.setattr(sys, "platform", platform)
    steps: dict[str, list[Step]] = {}

    def recorder(name: str) -> Any:
        def record(*given: Any, **named: Any) -> Step:
            steps.setdefault(name, []).append(Step(*given, **named))
            return steps[name][-1]

        return record

    names = ("Analysis", "PYZ", "EXE", "COLLECT", "BUNDLE")
    given = {"SPECPATH": str(SPEC.parent), "workpath": str(work)}
    exec(compile(SPEC.read_text(), str(SPEC), "exec"), given | {n: recorder(n) for n in names})
    return steps


@pytest.mark.parametrize("platform", ["linux", "win32", "darwin"])
def test_it_can_be_evaluated_and_every_file_that_it_names_exists(
    platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = evaluate(platform, tmp_path, monkeypatch)
    (analysis,) = steps["Analysis"]
    named = [source for source, _ in (*analysis.named["datas"], *analysis.named["binaries"])]
    named += [*analysis.given[0], *analysis.named["pathex"]]
    (program,) = steps["EXE"]
    named += [program.named["entitlements_file"]]
    named += [program.named["icon"]] if program.named["icon"] else []
    assert [name for name in named if not Path(name).exists()] == []
    assert program.named["upx"] is False
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert ["app.cli", "/somewhere/app/cli.py"] in manifest


def test_only_a_mac_gets_an_app_and_only_windows_hides_a_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mac = evaluate("darwin", tmp_path, monkeypatch)
    assert mac["BUNDLE"][0].named["name"] == "Inglenook.app"
    assert mac["EXE"][0].named["hide_console"] is None
    windows = evaluate("win32", tmp_path, monkeypatch)
    assert "BUNDLE" not in windows
    assert windows["EXE"][0].named["hide_console"] == "hide-early"
    assert "BUNDLE" not in evaluate("linux", tmp_path, monkeypatch)


def test_the_entitlements_of_a_mac_can_be_read() -> None:
    with (SPEC.parent / "macos" / "entitlements.plist").open("rb") as file:
        entitlements = plistlib.load(file)
    assert set(entitlements.values()) == {True}
    assert all(name.startswith("com.apple.security.") for name in entitlements)
