"""A server of /v1 in this process whose tokens are words, and which says what it computed.

A prompt is `<role> word word ... <assistant>`, an answer `said said ...`. What is held of earlier
prompts is found by comparing beginnings, and nothing else.
"""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

KEY = "secret"


@dataclass(frozen=True)
class Asked:
    """A request as the server understood it."""

    user: str
    prompt: tuple[str, ...]
    prefilled: int
    body: dict[str, Any] = field(repr=False)


class FakeChatServer:
    """`words` says how counts are told: ours, llama.cpp's, usage or not at all.

    `places` is how many sequences it holds (None: all), the least recently used goes first.
    `thought` is put in front of every answer and is no part of the history. Reading takes
    `read_s` a token, and nobody is written to meanwhile; writing takes `write_s`.
    """

    def __init__(
        self,
        words: str = "ours",
        *,
        places: int | None = None,
        thought: str = "",
        refuses: tuple[str, ...] = (),
        read_s: float = 0.0,
        write_s: float = 0.0,
    ) -> None:
        self.words = words
        self.places = places
        self.thought = tuple(thought.split())
        self.refuses = refuses
        self.read_s = read_s
        self.write_s = write_s
        self.held: list[tuple[str, ...]] = []
        self.asked: list[Asked] = []
        self.num_broken = 0
        self.computing = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self.reply(200, {"data": [{"id": "fake-model"}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.headers["Authorization"] != f"Bearer {KEY}":
                    self.reply(401, {"error": {"message": "no key"}})
                elif unknown := set(fake.refuses) & set(body):
                    self.reply(400, {"error": {"message": f"unknown field {unknown}"}})
                else:
                    fake.answer(self, body)

            def reply(self, status: int, value: object) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def forget(self) -> None:
        self.held.clear()

    def answer(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        prompt = prompt_of(body["messages"]) + self.thought
        with self.computing:
            cached = max((common(prompt[:-1], held) for held in self.held), default=0)
            prefilled = len(prompt) - cached
            self.asked.append(Asked(body["user"], prompt, prefilled, body))
            self.hold(prompt)
            time.sleep(self.read_s * prefilled)
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        said = ["said"] * body["max_tokens"]
        try:
            event(handler, {"choices": [{"delta": {"role": "assistant", "content": ""}}]})
            for index, word in enumerate(said):
                with self.computing:
                    pass
                time.sleep(self.write_s)
                text = word if index == 0 else f" {word}"
                event(handler, {"choices": [{"delta": {"content": text}}]})
            with self.computing:
                self.held.remove(prompt)
                self.hold(prompt + tuple(said))
            event(handler, self.last(len(prompt), prefilled, cached, len(said)))
            handler.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            self.num_broken += 1

    def hold(self, tokens: tuple[str, ...]) -> None:
        self.held.append(tokens)
        if self.places is not None:
            del self.held[: -self.places]

    def last(self, prompt: int, prefilled: int, cached: int, said: int) -> dict[str, Any]:
        usage: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": said}
        match self.words:
            case "ours":
                timings = {
                    "prefilled_tokens": prefilled,
                    "cached_tokens": cached - cached // 4,
                    "restored_tokens": cached // 4,
                }
                return {"choices": [], "timings": timings, "usage": usage}
            case "llama":
                timings = {"prompt_n": prefilled, "cache_n": cached}
                return {"choices": [], "timings": timings, "usage": usage}
            case "usage":
                usage["prompt_tokens_details"] = {"cached_tokens": cached}
                return {"choices": [], "usage": usage}
        return {"choices": []}


def event(handler: BaseHTTPRequestHandler, value: object) -> None:
    handler.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
    handler.wfile.flush()


def prompt_of(messages: list[dict[str, str]]) -> tuple[str, ...]:
    words = [
        word
        for message in messages
        for word in (f"<{message['role']}>", *message["content"].split())
    ]
    return (*words, "<assistant>")


def common(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    return length
