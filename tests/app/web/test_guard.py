"""The guard lets the page and other programs in, and nobody else."""

from typing import Any

import pytest

from app.web.guard import HEADERS, Guard, local_hosts

PORT = 7341
OWN = f"http://127.0.0.1:{PORT}"
PAGE = {"host": f"127.0.0.1:{PORT}", "origin": OWN, "sec-fetch-site": "same-origin"}
PROGRAM = {"host": f"127.0.0.1:{PORT}"}


async def anything(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


async def ask(method: str, path: str, headers: dict[str, str]) -> tuple[int, str, dict[str, str]]:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    await Guard(anything, local_hosts(PORT))(scope, None, send)  # type: ignore[arg-type]
    received = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], sent[1]["body"].decode(), received


@pytest.mark.parametrize("host", ["127.0.0.1:7341", "localhost:7341", "[::1]:7341"])
async def test_every_name_of_this_machine_is_served(host: str) -> None:
    assert (await ask("GET", "/", {"host": host}))[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.test", "evil.test:7341", "127.0.0.1", "127.0.0.1:80", "localhost:7342", ""]
)
async def test_a_name_that_only_points_here_is_refused(host: str) -> None:
    status, sentence, _ = await ask("GET", "/", {"host": host})
    assert status == 421
    assert sentence.strip().endswith(".")


async def test_a_request_without_a_host_is_refused() -> None:
    assert (await ask("GET", "/", {}))[0] == 421


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "http://evil.test",
            "null",
            "http://localhost:3000",
            f"http://127.0.0.1:{PORT}.evil.test",
        ),
        # The page is http: what has another scheme is another site.
        *(f"https://127.0.0.1:{PORT}", f"ftp://localhost:{PORT}", f"127.0.0.1:{PORT}", ""),
        f"http://http://127.0.0.1:{PORT}",
    ],
)
@pytest.mark.parametrize("path", ["/gradio_api/queue/join", "/v1/chat/completions"])
async def test_a_foreign_origin_is_refused_everywhere(origin: str, path: str) -> None:
    assert (await ask("POST", path, PROGRAM | {"origin": origin}))[0] == 403


@pytest.mark.parametrize(
    ("origin", "is_let_in"),
    [
        ("https://Chat.example:8443", True),
        ("http://chat.example:8443", True),
        (f"https://127.0.0.1:{PORT}", False),
        ("https://other.example:8443", False),
    ],
)
async def test_a_name_that_was_given_may_have_a_proxy_with_encryption(
    origin: str, is_let_in: bool
) -> None:
    guard = Guard(anything, local_hosts(PORT), ["chat.example:8443"])
    headers = {b"host": b"chat.example:8443", b"origin": origin.encode()}
    scope = {"method": "POST", "path": "/v1/chat/completions", "headers": list(headers.items())}
    assert (guard.refusal(scope) is None) == is_let_in


async def test_the_page_may_send() -> None:
    assert (await ask("POST", "/gradio_api/queue/join", PAGE))[0] == 200


async def test_the_pages_own_routes_need_an_origin_to_change_anything() -> None:
    assert (await ask("POST", "/gradio_api/run/predict", PROGRAM))[0] == 403


async def test_another_program_needs_no_origin() -> None:
    assert (await ask("POST", "/v1/chat/completions", PROGRAM))[0] == 200
    assert (await ask("GET", "/v1/models", PROGRAM))[0] == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_another_site_cannot_fetch(site: str) -> None:
    headers = PROGRAM | {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    for path in ("/config", "/gradio_api/queue/data", "/v1/models", "/_app/state", "/"):
        assert (await ask("GET", path, headers))[0] == 403


async def test_a_link_to_the_page_may_be_followed_from_anywhere() -> None:
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert (await ask("GET", "/", PROGRAM | link | {"sec-fetch-dest": "document"}))[0] == 200
    assert (await ask("GET", "/", PROGRAM | link | {"sec-fetch-dest": "iframe"}))[0] == 403
    assert (await ask("GET", "/config", PROGRAM | link | {"sec-fetch-dest": "document"}))[0] == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/openapi.json"),
        ("GET", "/gradio_api/openapi.json"),
        ("GET", "/gradio_api/info"),
        ("GET", "/gradio_api/deep_link"),
        ("GET", "/gradio_api/proxy=http://evil.test"),
        ("GET", "/gradio_api/file=/etc/passwd"),
        ("GET", "/gradio_api/vibe-code"),
        ("GET", "/gradio_api/heartbeat/abc"),
        ("GET", "/monitoring/summary"),
        ("POST", "/gradio_api/upload"),
        ("POST", "/gradio_api/call/send"),
        ("POST", "/gradio_api/run/other"),
        ("POST", "/gradio_api/process_recording"),
        ("POST", "/gradio_api/vibe-edit"),
        ("DELETE", "/gradio_api/queue/join"),
        ("GET", "//evil.test"),
    ],
)
async def test_what_the_page_does_not_need_is_not_there(method: str, path: str) -> None:
    status, sentence, _ = await ask(method, path, PAGE)
    assert (status, sentence) == (404, "There is nothing at this address.\n")


@pytest.mark.parametrize("headers", [PAGE, {"host": "evil.test"}])
async def test_every_reply_binds_the_browser(headers: dict[str, str]) -> None:
    _, _, received = await ask("GET", "/", headers)
    assert {name.decode(): value.decode() for name, value in HEADERS.items()}.items() <= (
        received.items()
    )


async def test_a_websocket_is_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await Guard(anything, local_hosts(PORT))(
        {"type": "websocket", "path": "/"},
        None,  # type: ignore[arg-type]
        send,
    )
    assert [message["type"] for message in sent] == ["websocket.close"]
