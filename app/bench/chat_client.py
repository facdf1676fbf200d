"""A client of any OpenAI-compatible server that times what it reads and counts what was computed.

    sent ----- prompt is read -----| first | gap | gap | ... | end: usage, timings
         \\______ ttft _______/

Each server tells in its own words how much of a prompt it computed: we in `timings`, llama.cpp in
`timings` of another shape, others in `usage`.
"""

import contextlib
import http.client
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from urllib.parse import SplitResult, urlsplit

from engine.errors import EngineError, UsageError

READ_S = 600.0
Message = Mapping[str, str]
OnPiece = Callable[[float], bool]
"""Called with the moment of each piece of text; False closes the connection, as a reader does who
presses Stop."""


def go_on(moment: float) -> bool:
    """Read to the end."""
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Tokens of a prompt: computed, or held in memory, or brought back. None: it was not told."""

    prompt: int | None = None
    prefilled: int | None = None
    cached: int | None = None
    restored: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. `ttft_s` from the request to the first text of any kind; `gaps_s` between
    the pieces after it; `alone_s` the same time when nobody else was answered, where measured."""

    text: str
    ttft_s: float
    gaps_s: tuple[float, ...] = ()
    total_s: float = 0.0
    counts: Counts = Counts()
    alone_s: float | None = None


class ChatClient:
    """A connection for each request. Used by several threads at once only after `connect`."""

    def __init__(self, url: str, key: str = "") -> None:
        """`url` with or without its `/v1`."""
        self._address = split_address(url)
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        self._model = "default"
        # Both sides write as many tokens as they are asked for, where a server can do that.
        self._extras: Mapping[str, Any] = {"ignore_eos": True}

    def connect(self) -> None:
        """Learn the model's name, and whether the server takes what OpenAI's would refuse."""
        models = self._fetch("GET", "/models").get("data") or [{}]
        self._model = str(models[0].get("id") or self._model)
        probe = [{"role": "user", "content": "Hello"}]
        try:
            self.say(probe, user="probe", max_tokens=1)
        except Refused:
            self._extras = {}
            self.say(probe, user="probe", max_tokens=1)

    def say(
        self,
        messages: Sequence[Message],
        *,
        user: str,
        max_tokens: int,
        more: Mapping[str, Any] | None = None,
        on_piece: OnPiece = go_on,
    ) -> Answer:
        """The likeliest answer. One that `on_piece` cuts short has no counts."""
        body = {
            "model": self._model,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "user": user,
            **self._extras,
            **(more or {}),
        }
        began = perf_counter()
        arrivals: list[float] = []
        said: list[str] = []
        usage: Mapping[str, Any] = {}
        timings: Mapping[str, Any] = {}
        with self._request("POST", "/chat/completions", body) as response:
            for event in events(response):
                usage = event.get("usage") or usage
                timings = event.get("timings") or timings
                thinking, content = texts_of(event)
                if thinking or content:
                    said.append(content)
                    arrivals.append(perf_counter())
                    if not on_piece(arrivals[-1]):
                        usage = timings = {}
                        break
        ended = perf_counter()
        first = arrivals[0] if arrivals else ended
        return Answer(
            text="".join(said),
            ttft_s=first - began,
            gaps_s=gaps_of(arrivals),
            total_s=ended - began,
            counts=counts_of(usage, timings),
        )

    def _fetch(self, method: str, path: str) -> dict[str, Any]:
        with self._request(method, path) as response:
            found = json.loads(response.read())
        return found if isinstance(found, dict) else {}

    @contextlib.contextmanager
    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """The response, once its status is good. Leaving the block closes the connection."""
        secure = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._address.netloc, timeout=READ_S)
        response = None
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, self._address.path + path, text, self._headers)
            response = connection.getresponse()
            if response.status != 200:
                said = response.read().decode("utf-8", "replace")[:300]
                raise (Refused if response.status in (400, 422) else EngineError)(
                    f"{self._address.geturl()} answered {method} {path} with {response.status}:"
                    f" {said}"
                )
            yield response
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise EngineError(
                f"{self._address.geturl()} gave no sound answer to {method} {path} ({error!r}): is"
                " an OpenAI-compatible server running there?"
            ) from error
        finally:
            # A response that was not read to its end keeps the socket open by itself.
            if response is not None:
                response.close()
            connection.close()


class Refused(EngineError):
    """The server found something in the request that it does not take."""


def split_address(url: str) -> SplitResult:
    """The address without a slash at its end and with the `/v1` that people leave out."""
    address = urlsplit(url if "//" in url else f"http://{url}")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise UsageError(f"{url} is no address of a server: give one like http://127.0.0.1:8080.")
    return address._replace(path=address.path.rstrip("/") or "/v1", query="", fragment="")


def events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The JSON of each event as it comes. An error among them is raised."""
    for line in response:
        name, _, data = line.strip().partition(b":")
        data = data.strip()
        if name != b"data" or not data:
            continue
        if data == b"[DONE]":
            return
        event = json.loads(data)
        if event.get("error"):
            raise EngineError(f"The server broke off its answer: {event['error']}")
        yield event


def texts_of(event: Mapping[str, Any]) -> tuple[str, str]:
    """What the event adds to the thinking and to the answer."""
    deltas = [choice.get("delta") or {} for choice in event.get("choices") or ()]
    thinking = "".join(
        delta.get("reasoning_content") or delta.get("reasoning") or "" for delta in deltas
    )
    return thinking, "".join(delta.get("content") or "" for delta in deltas)


def gaps_of(moments: Sequence[float]) -> tuple[float, ...]:
    return tuple(later - earlier for earlier, later in zip(moments, moments[1:], strict=False))


def counts_of(usage: Mapping[str, Any], timings: Mapping[str, Any]) -> Counts:
    """Our timings, else llama.cpp's, else what OpenAI's usage tells."""
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    if "prefilled_tokens" in timings:
        prefilled, held = timings["prefilled_tokens"], timings["cached_tokens"]
        restored = timings["restored_tokens"]
        return Counts(
            prompt=prefilled + held + restored, prefilled=prefilled, cached=held, restored=restored
        )
    if "prompt_n" in timings:
        prefilled, held = timings["prompt_n"], timings.get("cache_n", cached)
        prompt = usage.get("prompt_tokens") if held is None else prefilled + held
        return Counts(prompt=prompt, prefilled=prefilled, cached=held)
    prompt = usage.get("prompt_tokens")
    if prompt is None or cached is None:
        return Counts(prompt=prompt)
    return Counts(prompt=prompt, prefilled=prompt - cached, cached=cached)
