"""The frozen program as a Mac wants it: Inglenook.app in a .dmg.

Signed by PyInstaller when INGLENOOK_CODESIGN_IDENTITY names a "Developer ID Application"
certificate, and then notarised when INGLENOOK_NOTARY_PROFILE names the keychain profile that
`xcrun notarytool store-credentials` has kept. Without them it runs on the Mac that it was made on,
and others have to allow it in their settings.
"""

import os
import platform
import subprocess
from pathlib import Path

from engine_wheel import BuildError

IDENTITY = "INGLENOOK_CODESIGN_IDENTITY"
PROFILE = "INGLENOOK_NOTARY_PROFILE"


def make_dmg(frozen: Path, version: str, into: Path, work: Path) -> Path:
    """inglenook-VERSION-macos-PROCESSOR.dmg. `frozen` is beside the Inglenook.app made of it."""
    bundle = frozen.parent / "Inglenook.app"
    profile = os.environ.get(PROFILE, "")
    image = into / f"inglenook-{version}-macos-{platform.machine()}.dmg"
    for command in commands(bundle, image, work, profile):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise BuildError(f"{command[0]} {command[1]} failed: {done.stderr.strip()}")
    return image


def commands(bundle: Path, image: Path, work: Path, profile: str) -> list[list[str]]:
    """In their order. An archive for Apple keeps links only if `ditto` makes it."""
    archive = work / "Inglenook.zip"
    submit = ["xcrun", "notarytool", "submit", "--wait", "--keychain-profile", profile]
    notarise = [
        ["codesign", "--verify", "--deep", "--strict", str(bundle)],
        ["ditto", "-c", "-k", "--keepParent", str(bundle), str(archive)],
        [*submit, str(archive)],
        ["xcrun", "stapler", "staple", str(bundle)],
    ]
    wrap = ["hdiutil", "create", "-volname", "Inglenook", "-srcfolder", str(bundle)]
    return [*(notarise if profile else []), [*wrap, "-ov", "-format", "UDZO", str(image)]]
