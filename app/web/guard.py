"""Who may speak to the app: an ASGI layer outside everything else.

A page of another site can make a browser send requests here, and can point a name of its own at
this machine. So the name in Host must be ours, Origin must be ours, and only what the page needs
is reachable at all.
"""

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self' data:; "
    "connect-src 'self'; worker-src 'self' blob:; frame-src 'none'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'self'; object-src 'none'"
)
HEADERS: dict[bytes, bytes] = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}

PAGE_GET = re.compile(
    r"/(config/?|theme\.css|favicon\.ico|manifest\.json|robots\.txt|assets/.+|static/.+|svelte/.+"
    r"|gradio_api/(queue/data|startup-events|app_id/?|theme\.css))?"
)
# What ends the app, or opens something on the screen, is for the page alone.
DOORS = r"_app/(?:quit|restart|logs)"
PAGE_POST = re.compile(rf"/(gradio_api/(run/predict|queue/join|cancel|reset/?)|{DOORS})")
# Other programs come here too: they send no Origin and prove themselves with a key.
PROGRAMS = re.compile(rf"/(?!{DOORS}$)(v1|_app)/.+")

OWN_SITES = {None, "same-origin", "none"}


def local_hosts(port: int) -> frozenset[str]:
    """The names a browser on this machine may use for the app."""
    names = ("127.0.0.1", "localhost", "[::1]")
    bare = names if port == 80 else ()
    return frozenset((*(f"{name}:{port}" for name in names), *bare))


class Guard:
    """Refuses with one sentence, or passes on and adds the headers that bind the browser.

    `named` are names besides `hosts`, such as that of a proxy in front: what a browser knows as
    https may come from there, and from nowhere else, since this app speaks http.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str], named: Iterable[str] = ()) -> None:
        self.app = app
        named = [host.lower() for host in named]
        self.hosts = frozenset((*(host.lower() for host in hosts), *named))
        self.origins = frozenset(
            (*(f"http://{host}" for host in self.hosts), *(f"https://{host}" for host in named))
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_bound(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0].lower() not in HEADERS]
                message = {**message, "headers": [*kept, *HEADERS.items()]}
            await send(message)

        refusal = self.refusal(scope)
        if refusal is None:
            await self.app(scope, receive, send_bound)
        else:
            await _refuse(*refusal, send_bound)

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and sentence, or None when the request may pass."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        method, path = scope["method"], scope["path"]
        if headers.get("host", "").lower() not in self.hosts:
            return 421, "This app answers only at its own address on this computer."
        if self._is_foreign(headers, method, path):
            return 403, "Another site may not use this app."
        if PROGRAMS.fullmatch(path):
            return None
        if method in ("GET", "HEAD") and PAGE_GET.fullmatch(path):
            return None
        if method == "POST" and PAGE_POST.fullmatch(path):
            has_origin = "origin" in headers
            return None if has_origin else (403, "Only the app's own page may do this.")
        return 404, "There is nothing at this address."

    def _is_foreign(self, headers: dict[str, str], method: str, path: str) -> bool:
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins:
            return True
        # A link to the page may be followed from anywhere; nothing else may be fetched.
        is_link = (
            method == "GET"
            and path == "/"
            and headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest") == "document"
        )
        return not is_link and headers.get("sec-fetch-site") not in OWN_SITES


async def _refuse(status: int, sentence: str, send: Send) -> None:
    body = f"{sentence}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
