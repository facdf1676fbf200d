"""Hand a command to the running app and speak for it."""

import http.client
import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict
from typing import Any

from app.commands.console import Console
from app.commands.options import Options
from app.owner import TOKEN_HEADER, OwnerAddress
from engine.errors import EngineDead


def relay(address: OwnerAddress, options: Options, console: Console) -> int:
    """The exit code. Leaving early (Ctrl-C, a closed pipe) cancels the command over there."""
    with closing(lines(address, options)) as said:
        for line in said:
            if "out" in line:
                console.write(line["out"])
            elif "note" in line:
                console.note(line["note"])
            elif "progress" in line:
                console.progress(line["progress"])
            elif "exit" in line:
                return int(line["exit"])
    raise EngineDead("The running app broke off the command: look into its log.")


def lines(address: OwnerAddress, options: Options) -> Generator[dict[str, Any], None, None]:
    """What the running app says, as it says it."""
    connection = http.client.HTTPConnection(address.host, address.port)
    try:
        connection.request(
            "POST",
            "/_app/command",
            json.dumps(asdict(options)).encode(),
            {TOKEN_HEADER: address.token, "Content-Type": "application/json"},
        )
        response = connection.getresponse()
        if response.status != 200:
            raise EngineDead(
                f"The running app refused the command ({response.status}): quit it and try again."
            )
        for raw in response:
            yield json.loads(raw)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise EngineDead(
            "The running app ended while it carried out the command: start it again and repeat."
        ) from error
    finally:
        connection.close()
