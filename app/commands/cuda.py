"""`inglenook cuda`: what an NVIDIA card needs, installed beside the app, and removed."""

from typing import TYPE_CHECKING

from app.amounts import bytes_in_words
from app.commands.console import Console, write_json
from app.commands.options import Options
from app.cuda.cards import NOT_YET
from app.services import Services
from engine.errors import UsageError

if TYPE_CHECKING:
    # Only for the types: who asks for help should not wait for what it needs.
    from app.cuda.installation import Standing

NEXT = "Start Inglenook again to use it."


async def cuda(services: Services, options: Options, console: Console) -> None:
    actions = {"install": install, "status": status, "remove": remove}
    await actions[options.action](services, options, console)


async def install(services: Services, options: Options, console: Console) -> None:
    """Without --yes only the sizes are asked for."""
    installation = services.cuda
    if not options.yes:
        plan = await installation.look(
            options.torch_index, anyway=options.anyway, hear=console.note
        )
        if options.json:
            write_json(console, {"installed": False, **plan.as_json()})
            return
        lines = [line[:1].upper() + line[1:] for line in plan.lines()]
        console.write("".join(f"{line}.\n" for line in lines))
        console.write(f"{NOT_YET}\n")
        raise UsageError("Nothing was installed: say so with --yes.")
    made = await installation.install(options.torch_index, anyway=options.anyway, hear=console.note)
    if options.json:
        write_json(console, (await installation.standing()).as_json())
        return
    console.write(
        f"Inglenook {made.version} with torch {made.torch} is installed in"
        f" {installation.environment.folder} ({bytes_in_words(made.num_bytes)}). {NEXT}\n"
    )


async def status(services: Services, options: Options, console: Console) -> None:
    standing = await services.cuda.standing()
    if options.json:
        write_json(console, standing.as_json())
    else:
        console.write("".join(f"{line}\n" for line in standing_lines(standing)))


def standing_lines(standing: "Standing") -> list[str]:
    """Sentences: what is installed, and whether it helps."""
    made = standing.made
    if made is None:
        return [
            "Nothing is installed for the graphics card.",
            standing.useless or "`inglenook cuda install` says what it would take.",
            *filter(None, [standing.not_yet]),
        ]
    said = [
        f"Torch {made.torch} is installed for Inglenook {made.version}, with Python {made.python}"
        f" and {bytes_in_words(made.num_bytes)}."
    ]
    if standing.obstacle:
        said.append(standing.obstacle)
    elif standing.is_ours:
        said.append("Inglenook runs from it.")
    else:
        said.append("The next start of Inglenook uses it.")
    return [*said, *filter(None, (standing.useless, standing.not_yet))]


async def remove(services: Services, options: Options, console: Console) -> None:
    installation = services.cuda
    made = installation.environment.made()
    if made is not None and not options.yes:
        raise UsageError(
            f"This deletes {installation.environment.folder} ({bytes_in_words(made.num_bytes)})."
            " Nothing was done: say so with --yes."
        )
    is_gone = await installation.remove()
    if options.json:
        write_json(console, {"removed": True, "gone": is_gone})
    elif is_gone:
        console.write("It is removed.\n")
    else:
        console.write("It is not used any more, and deleted at the next start.\n")
