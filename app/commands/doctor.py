"""`inglenook doctor`: what this machine is, what will run, how fast, and what is wrong."""

import asyncio
import os
from dataclasses import asdict
from pathlib import Path

from app.commands.console import Console, write_json
from app.commands.options import Options
from app.machine.findings import Findings
from app.machine.roofline_picture import draw
from app.machine.wording import check_lines, lines_of
from app.services import Services
from engine.errors import HomeError, UsageError


async def doctor(services: Services, options: Options, console: Console) -> None:
    """Look at everything, say it, and never stop at the first fault.

    A fault that was found is no failure of the command; a repair or a picture that was impossible
    is one, and so is a picture that has no place, before anything is measured.
    """
    if options.file:
        check_place(Path(options.file))
    findings = await services.machine.look(is_repair=options.repair, is_again=options.again)
    self_test = await services.machine.try_out() if options.self_test else None
    if options.json:
        result = findings.as_json()
        if self_test is not None:
            result["self_test"] = [asdict(check) for check in self_test]
            result["ok"] = findings.ok and all(check.ok for check in self_test)
        write_json(console, result)
    elif options.report:
        console.write(services.machine.report())
    else:
        lines = lines_of(findings)
        if self_test is not None:
            lines += ["", "Self-test", *check_lines(self_test)]
        console.write("\n".join(lines) + "\n")
    if options.file:
        await asyncio.to_thread(keep_picture, findings, Path(options.file))
    (cache,) = [check for check in findings.checks if check.name == "cache"]
    if options.repair and not cache.ok:
        raise HomeError(f"Nothing was repaired, because {cache.message}: {cache.remedy}.")


def check_place(file: Path) -> None:
    """Raises UsageError where no file can be written."""
    fault = ""
    if file.is_dir():
        fault = "it is a folder"
    elif not file.parent.is_dir():
        fault = f"there is no folder {file.parent}"
    elif not os.access(file if file.exists() else file.parent, os.W_OK):
        fault = "you may not write there"
    if fault:
        raise UsageError(
            f"The picture cannot be written to {file} ({fault}): choose another place."
        )


def keep_picture(findings: Findings, file: Path) -> None:
    """Raises UsageError where there is nothing to draw, or no place for it."""
    if findings.roofline is None:
        raise UsageError(
            "There is no picture, because no model could be measured: put right what is said above."
        )
    try:
        file.write_text(draw(findings.roofline).as_svg(), encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"The picture cannot be written to {file} ({error.strerror}): choose another place."
        ) from error
