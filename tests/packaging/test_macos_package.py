"""A Mac's image, as far as another system can tell."""

from pathlib import Path

from macos_package import commands

APP, IMAGE, WORK = Path("/b/Inglenook.app"), Path("/d/inglenook.dmg"), Path("/w")


def names(profile: str) -> list[str]:
    return [" ".join(command[:2]) for command in commands(APP, IMAGE, WORK, profile)]


def test_it_is_notarised_and_its_ticket_put_in_before_it_is_wrapped() -> None:
    assert names("a-profile") == [
        "codesign --verify",
        "ditto -c",
        "xcrun notarytool",
        "xcrun stapler",
        "hdiutil create",
    ]
    submitted = commands(APP, IMAGE, WORK, "a-profile")[2]
    assert submitted[submitted.index("--keychain-profile") + 1] == "a-profile"


def test_without_an_account_it_is_only_wrapped() -> None:
    assert names("") == ["hdiutil create"]
    assert commands(APP, IMAGE, WORK, "")[0][-1] == str(IMAGE)
