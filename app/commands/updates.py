"""`inglenook updates`: whether there is a newer version. Nothing is downloaded or installed."""

from app.commands.console import Console, write_json
from app.commands.options import Options
from app.services import Services


async def updates(services: Services, options: Options, console: Console) -> None:
    found = await services.updates.look(options.source)
    if options.json:
        write_json(console, found.as_json())
    else:
        console.write(f"{found.sentence()}\n")
