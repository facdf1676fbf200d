"""Hand a command to the running app and speak for it."""

import http.client
import json
from dataclasses import asdict

from app.commands.console import Console
from app.commands.options import Options
from app.owner import TOKEN_HEADER, OwnerAddress
from engine.errors import EngineDead


def relay(address: OwnerAddress, options: Options, console: Console) -> int:
    """The exit code. Leaving early (Ctrl-C) cancels the command over there."""
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
            raise EngineDead(f"The running app refused the command ({response.status}).")
        for raw in response:
            line = json.loads(raw)
            if "out" in line:
                console.write(line["out"])
            elif "note" in line:
                console.note(line["note"])
            elif "exit" in line:
                return int(line["exit"])
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise EngineDead(
            "The running app ended while it carried out the command: start it again and repeat."
        ) from error
    finally:
        connection.close()
    raise EngineDead("The running app broke off the command: look into its log.")
