"""What the README shows can be tried as it stands."""

import re
from pathlib import Path

from engine.guided.schema import read_schema

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_schema_that_an_example_takes_is_given_before_it() -> None:
    (asked,) = re.finditer(r"--schema (\S+\.json)", README)
    named = README.index(f"`{asked[1]}`")
    block = re.search(r"```json\n(.*?)```", README[named : asked.start()], re.DOTALL)
    assert block is not None
    assert read_schema(block[1])
