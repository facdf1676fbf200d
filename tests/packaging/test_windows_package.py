"""Windows' installer, as far as another system can tell."""

import re
from pathlib import Path

import pytest
import windows_package
from engine_wheel import BuildError
from windows_package import SCRIPT, setup_command, sign

TEXT = SCRIPT.read_text(encoding="utf-8")


def test_the_script_gets_all_that_it_asks_for() -> None:
    asked = set(re.findall(r"\{#(\w+)\}", TEXT)) | set(re.findall(r"#ifn?def (\w+)", TEXT))
    command = setup_command("iscc", Path("frozen"), "0.1.0", Path("dist"), "sign $f")
    given = {argument[2:].partition("=")[0] for argument in command if argument.startswith("/D")}
    assert asked == given
    assert command[-1] == str(SCRIPT) and SCRIPT.exists()


def test_it_takes_the_whole_frozen_folder() -> None:
    (source,) = re.findall(r'^Source: "([^"]+)"', TEXT, re.MULTILINE)
    assert source == r"{#Frozen}\*"
    assert "recursesubdirs" in TEXT


def test_no_administrator_is_needed() -> None:
    assert "PrivilegesRequired=lowest" in TEXT
    assert re.search(r"^DefaultDirName=\{localappdata\}", TEXT, re.MULTILINE)


def test_removing_it_asks_before_conversations_go_and_no_is_the_answer_given_first() -> None:
    assert "MB_DEFBUTTON2" in TEXT and "not UninstallSilent" in TEXT
    languages = re.findall(r'^Name: "(\w\w)"; MessagesFile', TEXT, re.MULTILINE)
    for language in languages:
        assert f"\n{language}.DeleteConversations=" in TEXT


def test_without_a_certificate_nothing_is_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(windows_package.SIGN, raising=False)
    assert not sign(tmp_path / "inglenook.exe")
    assert not any("sign" in each for each in setup_command("iscc", tmp_path, "1", tmp_path, ""))


def test_without_the_compiler_the_remedy_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows_package, "find_compiler", lambda: None)
    with pytest.raises(BuildError, match="winget install"):
        windows_package.make_setup(tmp_path, "0.1.0", tmp_path, tmp_path)
