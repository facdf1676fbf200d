"""What the client of a chat benchmark times and counts."""

from collections.abc import Iterator

import pytest

from app.bench.chat_client import ChatClient, Counts, counts_of, events, split_address, texts_of
from engine.errors import EngineError, UsageError
from tests.app.bench.fake_chat_server import KEY, FakeChatServer

HELLO = [{"role": "user", "content": "Hello there"}]


@pytest.fixture
def server() -> Iterator[FakeChatServer]:
    with FakeChatServer() as server:
        yield server


def client_of(server: FakeChatServer, key: str = KEY) -> ChatClient:
    client = ChatClient(server.url, key)
    client.connect()
    return client


def test_an_answer_has_its_text_and_a_gap_between_any_two_pieces(server: FakeChatServer) -> None:
    answer = client_of(server).say(HELLO, user="a", max_tokens=3)
    assert answer.text == "said said said"
    assert len(answer.gaps_s) == 2
    assert 0 < answer.ttft_s <= answer.total_s


def test_a_request_says_who_asks_and_that_the_likeliest_is_wanted(server: FakeChatServer) -> None:
    client_of(server).say(HELLO, user="chat-7", max_tokens=3, more={"id_slot": 0})
    body = server.asked[-1].body
    assert (body["user"], body["temperature"], body["max_tokens"]) == ("chat-7", 0, 3)
    assert (body["model"], body["ignore_eos"], body["id_slot"]) == ("fake-model", True, 0)


def test_the_first_text_is_waited_for_while_the_prompt_is_read() -> None:
    with FakeChatServer(read_s=0.02, write_s=0.01) as server:
        answer = client_of(server).say(
            [{"role": "user", "content": "a b c"}], user="a", max_tokens=4
        )
    # `<user>` is held since the first request, and three words and `<assistant>` are not.
    assert answer.ttft_s > 4 * 0.02
    # One by one: on a busy machine some of them may be read late, together with the next.
    assert len(answer.gaps_s) == 3


def test_a_field_that_only_some_take_is_left_out_where_it_is_refused() -> None:
    with FakeChatServer(refuses=("ignore_eos",)) as server:
        answer = client_of(server).say(HELLO, user="a", max_tokens=2)
    assert answer.text == "said said"
    assert all("ignore_eos" not in asked.body for asked in server.asked)


def test_any_other_refusal_is_told() -> None:
    with (
        FakeChatServer(refuses=("temperature",)) as server,
        pytest.raises(EngineError, match="400.*temperature"),
    ):
        client_of(server)


def test_a_wrong_key_is_told(server: FakeChatServer) -> None:
    with pytest.raises(EngineError, match="401.*no key"):
        client_of(server, "wrong")


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(EngineError, match="is an OpenAI-compatible server running there"):
        ChatClient("http://127.0.0.1:9").connect()


def test_a_reader_who_stops_closes_the_connection() -> None:
    moments: list[float] = []

    def read_on(moment: float) -> bool:
        moments.append(moment)
        return len(moments) < 3

    with FakeChatServer(write_s=0.005) as server:
        answer = client_of(server).say(HELLO, user="a", max_tokens=1000, on_piece=read_on)
        assert answer.text == "said said said"
        assert answer.counts == Counts()
        # What is written into a closed connection is refused sooner or later.
        for _ in range(200):
            if server.num_broken:
                break
            ChatClient(server.url, KEY).say(HELLO, user="b", max_tokens=1)
        assert server.num_broken == 1


def test_our_timings_come_before_all_else() -> None:
    timings = {"prefilled_tokens": 3, "cached_tokens": 10, "restored_tokens": 7, "prompt_n": 99}
    usage = {"prompt_tokens": 98, "prompt_tokens_details": {"cached_tokens": 97}}
    found = counts_of(usage, timings)
    assert found == Counts(prompt=20, prefilled=3, cached=10, restored=7)


def test_llama_cpp_says_what_it_computed_and_what_it_held() -> None:
    usage = {"prompt_tokens": 12, "prompt_tokens_details": {"cached_tokens": 8}}
    expected = Counts(prompt=12, prefilled=4, cached=8)
    assert counts_of(usage, {"prompt_n": 4, "cache_n": 8}) == expected
    assert counts_of(usage, {"prompt_n": 4}) == expected
    assert counts_of({"prompt_tokens": 12}, {"prompt_n": 4}) == Counts(prompt=12, prefilled=4)


def test_others_say_it_in_their_usage_or_not_at_all() -> None:
    usage = {"prompt_tokens": 12, "prompt_tokens_details": {"cached_tokens": 8}}
    assert counts_of(usage, {}) == Counts(prompt=12, prefilled=4, cached=8)
    # Without a word of a cache nothing is known of what was computed.
    assert counts_of({"prompt_tokens": 12}, {}) == Counts(prompt=12)
    assert counts_of({"prompt_tokens": 12, "prompt_tokens_details": None}, {}) == Counts(prompt=12)
    assert counts_of({}, {}) == Counts()


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1"),
        ("https://host/api/v1?x=1", "https://host/api/v1"),
        ("localhost:8080", "http://localhost:8080/v1"),
    ],
)
def test_an_address_may_lack_what_people_leave_out(given: str, url: str) -> None:
    assert split_address(given).geturl() == url


@pytest.mark.parametrize("given", ["ftp://host", "http://", "file:///etc"])
def test_what_is_no_address_is_wrong_use(given: str) -> None:
    with pytest.raises(UsageError, match="no address of a server"):
        split_address(given)


def test_thinking_is_text_that_came_and_no_part_of_the_answer() -> None:
    delta = {"reasoning_content": "Hm.", "content": None}
    assert texts_of({"choices": [{"delta": delta}]}) == ("Hm.", "")
    assert texts_of({"choices": [{"delta": {"content": "Yes"}}]}) == ("", "Yes")
    assert texts_of({"choices": []}) == ("", "")


def test_an_error_among_the_events_is_raised() -> None:
    lines = [b": a comment\n", b"\n", b'data: {"choices": []}\n', b'data: {"error": "x"}\n']
    found = events(lines)  # type: ignore[arg-type]
    assert next(found) == {"choices": []}
    with pytest.raises(EngineError, match="broke off"):
        next(found)
