"""What the frozen program leaves in the environment of browsers and of its own processes."""

from program import give_back

FROZEN = {"_PYI_ARCHIVE_FILE": "/p/inglenook", "_PYI_PARENT_PROCESS_LEVEL": "0"}


def test_a_browser_finds_its_own_libraries() -> None:
    environment = {"LD_LIBRARY_PATH": "/p/_internal", "PATH": "/usr/bin", **FROZEN}
    give_back(environment)
    assert environment == {"PATH": "/usr/bin"}


def test_what_the_user_had_set_is_set_again() -> None:
    environment = {"LD_LIBRARY_PATH": "/p/_internal:/mine", "LD_LIBRARY_PATH_ORIG": "/mine"}
    give_back(environment)
    assert environment == {"LD_LIBRARY_PATH": "/mine"}
