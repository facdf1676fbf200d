"""The store: budgets hold, what is found is right, and words that were deleted are gone."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from engine.kv.segment import NOBODY, Belonging, Blob
from engine.kv.store import KVStore
from tests.fakes_disk import FakeDisk

PIECE = 16
TOKEN = 10
"""Bytes that a token's KV takes here."""


def kv_of(prefix: Sequence[int], start: int) -> Blob:
    """KV that tells which tokens it is of, and after which."""
    rows = [[sum(prefix[: i + 1]) % 251] * TOKEN for i in range(start, len(prefix))]
    return np.array(rows, np.uint8).reshape(-1)


def cut(blob: Blob, start: int, end: int, num_tokens: int) -> Blob | None:
    assert blob.nbytes == (end - start) * TOKEN
    return blob[: num_tokens * TOKEN].copy()


class Shelf:
    """A store with a clock, over a disk that can be taken away and put back."""

    def __init__(self, ram: int = 100_000, disk: int = 100_000, can_cut: bool = True) -> None:
        self.now = 1_000_000.0
        self.disk = FakeDisk()
        self._sizes = ram, disk, can_cut
        self.store = self._new()
        self.store.attach(self.disk, [])

    def _new(self) -> KVStore:
        ram, disk, can_cut = self._sizes
        return KVStore(
            can_cut=can_cut,
            max_export_tokens=PIECE,
            ram_budget=ram,
            disk_budget=disk,
            cut=cut,
            clock=lambda: self.now,
        )

    def restart(self) -> None:
        self.store.close(1.0)
        self.store = self._new()
        self.store.attach(self.disk, self.disk.open())
        self.check()

    def put(
        self, token_ids: list[int], belonging: Belonging = NOBODY, *, is_canonical: bool = False
    ) -> int:
        self.now += 1
        length = before = -1
        while length < len(token_ids):
            length = self.store.put(
                token_ids,
                len(token_ids),
                lambda start, end: kv_of(token_ids[:end], start),
                belonging,
                is_canonical=is_canonical,
            )
            if length == before:
                break
            before = length
        self.store.maintain()
        self.check()
        return length

    def held(self, token_ids: list[int]) -> int:
        """How much of it is found; its KV must be the right one."""
        match = self.store.match(token_ids, len(token_ids))
        for segment in match.segments:
            blob = self.store.blob(segment)
            if blob is None:
                self.check()
                return self.held(token_ids)
            assert blob.tolist() == kv_of(segment.prefix(), segment.start).tolist()
        return match.length

    def check(self) -> None:
        self.store.check()
        usage = self.store.usage()
        assert usage.ram_bytes <= usage.ram_budget
        assert self.disk.num_bytes <= self._sizes[1]

    def written(self) -> list[list[int]]:
        """The paths from a first token on whose KV is on the disk."""
        rows = self.disk.rows

        def path(key: bytes) -> list[int]:
            before = path(rows[key].parent_key) if rows[key].parent_key else []
            return [*before[: rows[key].start], *rows[key].token_ids]

        return [path(key) for key in rows]


def durable(owner: str) -> Belonging:
    return Belonging(owner=owner, is_durable=True)


def chat(seed: int, length: int = 60, system: int = 20) -> list[int]:
    """Conversations that begin alike, as under one system prompt."""
    return [7] * system + random.Random(seed).choices(range(1, 200), k=length - system)


def test_what_was_stored_is_found_and_what_was_not_is_not() -> None:
    shelf = Shelf()
    shelf.put(chat(1))
    assert shelf.held(chat(1)) == 60
    assert shelf.held(chat(2)) == 20
    assert shelf.held([9] * 30) == 0


def test_a_shared_beginning_takes_its_bytes_once() -> None:
    shelf = Shelf()
    shelf.put(chat(1))
    shelf.put(chat(2))
    assert shelf.store.usage().ram_bytes == (60 + 40) * TOKEN


def test_a_restart_finds_what_may_reach_the_disk_and_nothing_else() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.put(chat(2), Belonging(owner="temporary"))
    shelf.put(chat(3))
    shelf.restart()
    assert shelf.held(chat(1)) == 60
    assert shelf.held(chat(2)) == 20
    assert shelf.held(chat(3)) == 20


@pytest.mark.parametrize("num_first", [10, 20, 30])
@pytest.mark.parametrize("is_first", [True, False], ids=["temporary first", "temporary last"])
def test_a_temporary_chat_that_begins_like_another_is_not_written_with_it(
    num_first: int, is_first: bool
) -> None:
    shelf = Shelf()
    beginning = [7] * num_first
    private, other = [*beginning, *[8] * 40], [*beginning, *[9] * 40]
    puts = [(private, Belonging(owner="temporary")), (other, durable("a"))]
    for token_ids, belonging in puts if is_first else puts[::-1]:
        shelf.put(token_ids, belonging)
    assert shelf.held(private) == len(private)
    assert all(path == other[: len(path)] for path in shelf.written())
    shelf.restart()
    assert shelf.held(other) == len(other)
    assert shelf.held(private) == num_first


def test_what_a_temporary_chat_shares_with_a_deleted_one_leaves_the_disk() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.put([*chat(1), *[8] * 40], Belonging(owner="temporary"))
    shelf.store.forget("a")
    shelf.store.maintain()
    shelf.check()
    assert not shelf.disk.files
    assert shelf.held([*chat(1), *[8] * 40]) == 100


def test_not_even_the_name_of_a_temporary_chat_reaches_the_disk() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.store.use(shelf.store.match(chat(1), 60), Belonging(owner="tmp-b"))
    shelf.store.maintain()
    shelf.check()
    assert {owner for row in shelf.disk.rows.values() for owner in row.num_used} == {"a"}


def test_an_ordinary_computation_never_stands_in_for_a_reproducible_one() -> None:
    shelf = Shelf()
    shelf.put(chat(1))
    assert shelf.store.match(chat(1), 60, is_canonical=True).length == 0
    shelf.put(chat(1)[:32], is_canonical=True)
    assert shelf.store.match(chat(1), 60, is_canonical=True).length == 32
    assert shelf.held(chat(1)) == 60


def test_a_damaged_file_is_a_miss_and_its_conversation_is_stored_again() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.restart()
    second = shelf.store.match(chat(1), 60).segments[1]
    shelf.disk.damage(second.key)
    assert shelf.held(chat(1)) == 16
    assert shelf.put(chat(1), durable("a")) == 60
    shelf.restart()
    assert shelf.held(chat(1)) == 60


def test_damage_in_memory_is_a_miss() -> None:
    shelf = Shelf()
    shelf.put(chat(1))
    blob = shelf.store.match(chat(1), 60).segments[2].blob
    assert blob is not None
    blob[3] ^= 1
    assert shelf.held(chat(1)) == 32


def test_memory_is_full_of_what_was_used_last() -> None:
    shelf = Shelf(ram=100 * TOKEN)
    for seed in range(10):
        shelf.put(chat(seed, system=0))
    assert shelf.held(chat(9, system=0)) == 60
    assert shelf.held(chat(0, system=0)) == 0


def test_the_shared_beginning_outlives_a_disk_filled_three_times() -> None:
    shelf = Shelf(ram=200 * TOKEN, disk=400 * TOKEN)
    for seed in range(30):
        shelf.put(chat(seed), durable(f"chat {seed}"))
    shelf.restart()
    assert shelf.held(chat(99)) >= 16
    assert shelf.held(chat(29)) == 60


def test_the_branch_that_was_left_goes_before_older_conversations_do() -> None:
    shelf = Shelf(ram=190 * TOKEN)
    shelf.put(chat(5, system=0))
    shelf.put([*chat(1)[:40], *[3] * 40], Belonging(owner="a"))
    shelf.put([*chat(1)[:40], *[4] * 40], Belonging(owner="a"))
    shelf.put(chat(6, length=30, system=0))
    assert shelf.held([*chat(1)[:40], *[3] * 40]) < 80
    assert shelf.held([*chat(1)[:40], *[4] * 40]) == 80
    assert shelf.held(chat(5, system=0)) == 60


def test_what_is_about_to_be_needed_is_not_evicted_for_something_else() -> None:
    shelf = Shelf(ram=130 * TOKEN)
    shelf.put(chat(1, system=0))
    shelf.store.protect(shelf.store.match(chat(1, system=0), 60).segments)
    shelf.put(chat(2, system=0))
    shelf.put(chat(3, system=0))
    assert shelf.held(chat(1, system=0)) == 60


def test_a_deleted_conversation_is_gone_and_what_others_share_stays() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.put(chat(2), durable("b"))
    shelf.store.forget("a")
    shelf.check()
    assert shelf.held(chat(1)) == 20
    assert shelf.held(chat(2)) == 60
    shelf.restart()
    assert shelf.held(chat(1)) == 20
    assert shelf.held(chat(2)) == 60
    words = set(chat(1)[20:]) - set(chat(2))
    left = {token for row in shelf.disk.rows.values() for token in row.token_ids}
    assert words and not words & left


def test_deleting_a_branch_leaves_the_paths_that_are_kept() -> None:
    shelf = Shelf()
    shelf.put([*chat(1)[:40], *[3] * 40], durable("a"))
    shelf.put([*chat(1)[:40], *[4] * 40], durable("a"))
    shelf.store.forget("a", [[*chat(1)[:40], *[4] * 40]])
    shelf.check()
    shelf.restart()
    assert shelf.held([*chat(1)[:40], *[3] * 40]) == 40
    assert shelf.held([*chat(1)[:40], *[4] * 40]) == 80


class TestSources:
    """What several owners read, such as a document."""

    DOCUMENT = random.Random(5).choices(range(1, 200), k=50)

    def asked(self, seed: int) -> list[int]:
        return [*self.DOCUMENT, *chat(seed, system=0, length=30)]

    def ask(self, shelf: Shelf, seed: int, owner: str, *, is_durable: bool = True) -> None:
        belonging = Belonging(
            owner=owner, is_durable=is_durable, source="document", num_source_tokens=50
        )
        shelf.put(self.asked(seed), belonging)

    def test_its_bytes_are_there_once(self) -> None:
        shelf = Shelf()
        for seed in range(5):
            self.ask(shelf, seed, f"chat {seed}")
        assert shelf.store.usage().ram_bytes == (50 + 5 * 30) * TOKEN
        shelf.restart()
        assert shelf.disk.num_bytes == (50 + 5 * 30) * TOKEN

    @pytest.mark.parametrize("can_cut", [True, False])
    def test_it_stays_when_its_readers_go(self, can_cut: bool) -> None:
        shelf = Shelf(can_cut=can_cut)
        if not can_cut:
            # As the engine does, which stores a state behind a source.
            shelf.put(
                self.DOCUMENT,
                Belonging(owner="a", is_durable=True, source="document", num_source_tokens=50),
            )
        self.ask(shelf, 1, "a")
        self.ask(shelf, 2, "b")
        shelf.store.forget("a")
        shelf.store.retain(["b", "document"])
        shelf.check()
        assert shelf.held(self.asked(1)) == 50
        assert shelf.held(self.asked(2)) == 80
        shelf.store.forget("b")
        shelf.restart()
        shelf.store.retain(["document"])
        assert shelf.held(self.asked(2)) == 50

    @pytest.mark.parametrize("can_cut", [True, False])
    def test_it_takes_with_it_what_was_said_about_it(self, can_cut: bool) -> None:
        shelf = Shelf(can_cut=can_cut)
        self.ask(shelf, 1, "a")
        self.ask(shelf, 2, "temporary", is_durable=False)
        shelf.put(chat(3, system=0), durable("a"))
        shelf.store.forget("document")
        shelf.check()
        assert shelf.held(self.asked(1)) == shelf.held(self.asked(2)) == 0
        assert shelf.held(chat(3, system=0)) == 60

    @pytest.mark.parametrize("is_first", [True, False])
    def test_others_that_begin_like_it_keep_their_beginning(self, is_first: bool) -> None:
        shelf = Shelf()
        other = [*self.DOCUMENT[:20], *[3] * 20]
        if is_first:
            self.ask(shelf, 1, "a")
        shelf.put(other, durable("b"))
        self.ask(shelf, 1, "a")
        shelf.store.forget("document")
        shelf.check()
        assert shelf.held(other) == 40
        assert shelf.held(self.asked(1)) == 20
        shelf.restart()
        assert shelf.held(other) == 40

    def test_it_goes_when_it_was_deleted_before_the_disk_was_there(self) -> None:
        shelf = Shelf()
        self.ask(shelf, 1, "a")
        shelf.store.close(1.0)
        shelf.store = shelf._new()
        shelf.store.retain(["a", "document"])
        shelf.store.forget("document")
        shelf.store.attach(shelf.disk, shelf.disk.open())
        shelf.check()
        assert shelf.held(self.asked(1)) == 0

    def test_a_failed_computation_gives_it_up(self) -> None:
        shelf = Shelf()
        self.ask(shelf, 1, "a")
        belonging = Belonging(owner="a", is_durable=True, source="document", num_source_tokens=50)
        shelf.store.distrust(self.asked(1), belonging)
        shelf.check()
        assert shelf.held(self.asked(1)) == 0


def test_what_was_deleted_while_the_app_was_away_goes_at_the_next_start() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.put(chat(2), durable("b"))
    shelf.restart()
    shelf.store.retain(["b"])
    shelf.check()
    assert shelf.held(chat(1)) == 20
    assert shelf.held(chat(2)) == 60


def test_what_was_deleted_before_the_disk_was_there_is_deleted_from_it() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.put(chat(2), durable("b"))
    shelf.put(chat(3), durable("c"))
    shelf.store.close(1.0)
    shelf.store = shelf._new()
    shelf.store.retain(["b", "c"])
    shelf.store.forget("c")
    new = chat(4, system=0)
    shelf.put(new, durable("new"))
    shelf.store.attach(shelf.disk, shelf.disk.open())
    shelf.check()
    assert [shelf.held(chat(seed)) for seed in (1, 2, 3)] == [20, 60, 20]
    assert shelf.held(new) == 60


def test_all_that_is_forgotten_before_the_disk_is_there_is_forgotten_on_it() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.store.close(1.0)
    shelf.store = shelf._new()
    shelf.disk.others = ["b"]
    shelf.store.forget_all()
    shelf.put(chat(2), durable("new"))
    shelf.store.attach(shelf.disk, shelf.disk.open())
    shelf.check()
    assert shelf.disk.others == []
    assert [shelf.held(chat(seed)) for seed in (1, 2)] == [20, 60]
    assert all(path == chat(2)[: len(path)] for path in shelf.written())


def test_a_branch_deleted_before_the_disk_is_there_leaves_the_paths_that_are_kept() -> None:
    shelf = Shelf()
    left, kept = [*chat(1)[:40], *[3] * 40], [*chat(1)[:40], *[4] * 40]
    shelf.put(left, durable("a"))
    shelf.put(kept, durable("a"))
    shelf.store.close(1.0)
    shelf.store = shelf._new()
    shelf.store.forget("a", [kept])
    shelf.put([*kept, *[5] * 10], durable("a"))
    shelf.store.attach(shelf.disk, shelf.disk.open())
    shelf.check()
    shelf.restart()
    assert shelf.held(left) == 40
    assert shelf.held([*kept, *[5] * 10]) == 90


def test_a_conversation_deleted_after_one_of_its_branches_leaves_nothing() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.store.close(1.0)
    shelf.store = shelf._new()
    shelf.store.forget("a", [chat(1)])
    shelf.store.forget("a")
    shelf.store.attach(shelf.disk, shelf.disk.open())
    shelf.check()
    assert shelf.held(chat(1)) == 0
    assert not shelf.disk.files


def test_the_same_tokens_in_memory_and_on_the_disk_are_one_segment() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.store.close(1.0)
    shelf.store = shelf._new()
    shelf.put(chat(1)[:32], durable("b"))
    shelf.store.attach(shelf.disk, shelf.disk.open())
    shelf.check()
    assert shelf.held(chat(1)) == 60
    assert shelf.disk.num_bytes == 60 * TOKEN


def test_words_that_another_model_read_are_deleted_with_them() -> None:
    shelf = Shelf()
    shelf.disk.others = ["a", "b", "c"]
    shelf.store.forget("a")
    assert shelf.disk.others == ["b", "c"]
    shelf.store.retain(["c"])
    assert shelf.disk.others == ["c"]


def test_a_full_disk_is_said_once_and_costs_nothing_but_the_disk() -> None:
    shelf = Shelf()
    shelf.disk.error = "The disk is full."
    shelf.put(chat(1), durable("a"))
    shelf.put(chat(2), durable("a"))
    assert shelf.store.usage().notice == "The disk is full."
    assert shelf.held(chat(1)) == 60


def test_a_slow_disk_holds_up_nobody_and_gets_everything_in_the_end() -> None:
    shelf = Shelf()
    shelf.disk.is_slow = True
    for seed in range(5):
        shelf.put(chat(seed), durable(f"chat {seed}"))
    assert shelf.disk.num_bytes == 0
    assert shelf.store.is_writing
    shelf.restart()
    assert all(shelf.held(chat(seed)) == 60 for seed in range(5))


def test_other_models_make_room_first() -> None:
    shelf = Shelf(disk=200 * TOKEN)
    shelf.disk.other_bytes = 150 * TOKEN
    shelf.put(chat(1), durable("a"))
    shelf.put(chat(2, system=0), durable("b"))
    assert shelf.disk.other_bytes <= 80 * TOKEN
    assert shelf.held(chat(1)) == 60


def test_what_leaves_a_full_disk_stays_in_memory() -> None:
    shelf = Shelf(disk=100 * TOKEN)
    for seed in range(4):
        shelf.put(chat(seed, system=0), durable(f"chat {seed}"))
    assert all(shelf.held(chat(seed, system=0)) == 60 for seed in range(4))
    shelf.restart()
    assert shelf.held(chat(3, system=0)) == 60
    assert shelf.held(chat(0, system=0)) == 0


def test_a_conversation_longer_than_the_disk_is_written_as_far_as_it_fits_and_once() -> None:
    shelf = Shelf(disk=70 * TOKEN)
    long = chat(1, length=200)
    for _ in range(5):
        shelf.put(long, durable("a"))
    assert shelf.disk.num_bytes_written <= 70 * TOKEN
    assert shelf.held(long) == 200
    shelf.restart()
    assert shelf.held(long) == 64


def test_a_segment_whose_parent_left_the_disk_is_written_with_it_when_it_is_used() -> None:
    shelf = Shelf(disk=70 * TOKEN)
    shelf.put(chat(1, system=0), durable("a"))
    shelf.put(chat(2, system=0), durable("b"))
    shelf.put(chat(1, system=0), durable("a"))
    shelf.restart()
    assert shelf.held(chat(1, system=0)) == 60


def test_a_failed_computation_costs_only_what_nobody_else_uses() -> None:
    shelf = Shelf()
    shelf.put(chat(1), durable("a"))
    shelf.put(chat(2), durable("b"))
    shelf.store.distrust(chat(1), durable("a"))
    shelf.check()
    assert shelf.held(chat(1)) < 60
    assert shelf.held(chat(2)) == 60


def test_a_smaller_budget_holds_at_once() -> None:
    shelf = Shelf()
    for seed in range(5):
        shelf.put(chat(seed))
    shelf.store.limit_ram(50 * TOKEN)
    assert shelf.store.usage().ram_bytes <= 50 * TOKEN
    shelf.store.check()


def test_a_smaller_budget_holds_also_over_what_somebody_is_about_to_need() -> None:
    shelf = Shelf()
    shelf.put(chat(1))
    match = shelf.store.match(chat(1), 60)
    shelf.store.protect(match.segments)
    shelf.store.limit_ram(20 * TOKEN)
    shelf.check()
    assert shelf.store.blob(match.segments[-1]) is None
    shelf.check()


def test_making_a_segment_shorter_may_take_it_away() -> None:
    """The cells for it are another conversation's, which goes to the store and pushes it out."""
    shelf = Shelf(ram=80 * TOKEN)
    store = shelf.store
    shelf.put(chat(1, length=32), Belonging(owner="a"))
    shelf.put(chat(2, length=32), Belonging(owner="b"))

    def cut_at_a_price(blob: Blob, start: int, end: int, num_tokens: int) -> Blob | None:
        shelf.put(chat(3, length=64, system=0), Belonging(owner="c"))
        return cut(blob, start, end, num_tokens)

    store._cut = cut_at_a_price
    store.forget("a")
    shelf.check()
    assert shelf.held(chat(3, length=64, system=0)) > 0


@pytest.mark.parametrize("can_cut", [True, False], ids=["ranges", "states"])
@pytest.mark.parametrize("seed", range(5))
def test_a_random_history_never_gives_wrong_kv_nor_breaks_a_budget(
    seed: int, can_cut: bool
) -> None:
    choose = random.Random(seed)
    shelf = Shelf(ram=300 * TOKEN, disk=600 * TOKEN, can_cut=can_cut)
    known: dict[str, list[list[int]]] = {}
    may_be_written: list[list[int]] = []
    # Two versions of one file.
    documents = {"": [], "x": [*[7] * 30, *[8] * 30], "y": [*[7] * 30, *[9] * 25]}

    def new_tokens() -> list[int]:
        paths = [path for each in known.values() for path in each]
        base = choose.choice(paths) if paths and choose.random() < 0.7 else [7] * 10
        return base[: choose.randrange(len(base) + 1)] + choose.choices(range(4), k=20)

    actions: list[Callable[[], object]] = []

    def put() -> None:
        owner = choose.choice("abcdef")
        token_ids = new_tokens()
        source = choose.choice(["", "", "x", "y"])
        document = documents[source]
        token_ids = [*document, *token_ids]
        is_durable = choose.random() < 0.8
        if is_durable:
            may_be_written.append(token_ids)
        shelf.put(
            token_ids,
            Belonging(
                owner=owner,
                is_durable=is_durable,
                source=source,
                num_source_tokens=len(document),
            ),
            is_canonical=choose.random() < 0.2,
        )
        if source:
            known.setdefault(source, []).append(document)
        known.setdefault(f"{source}+{owner}", []).append(token_ids)

    def forget() -> None:
        gone = choose.choice("abcdefxy")
        names = [name for name in known if gone in name.split("+")]
        paths = [path for name in names for path in known.pop(name)]
        shelf.store.forget(gone)
        for path in paths:
            others = [other for each in known.values() for other in each]
            shared = max((common(path, other) for other in others), default=0)
            assert shelf.store.match(path, len(path)).length <= shared

    def damage() -> None:
        if shelf.disk.files:
            shelf.disk.damage(choose.choice(sorted(shelf.disk.files)))

    def lag() -> None:
        shelf.disk.is_slow = not shelf.disk.is_slow
        if not shelf.disk.is_slow:
            shelf.disk.work()

    actions = [put, put, put, put, lambda: shelf.held(new_tokens()), forget, damage, lag]
    for number in range(400):
        choose.choice(actions)()
        shelf.store.maintain()
        shelf.store.check()
        for row in shelf.disk.rows.values():
            place = slice(row.start, row.start + len(row.token_ids))
            assert any(row.token_ids == tuple(words[place]) for words in may_be_written)
        if number % 50 == 49:
            shelf.restart()
            shelf.store.retain({user for name in known for user in name.split("+")})
            shelf.store.check()


def common(one: list[int], other: list[int]) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def test_what_is_about_to_be_needed_is_not_evicted_from_the_disk_either() -> None:
    """antirez/ds4#448: storing one chat evicted the prefix of the next from the disk."""
    shelf = Shelf(disk=130 * TOKEN)
    shelf.put(chat(1, system=0), durable("a"))
    shelf.store.protect(shelf.store.match(chat(1, system=0), 60).segments)
    for seed in range(2, 5):
        shelf.put(chat(seed, system=0), durable(f"chat {seed}"))
    shelf.restart()
    assert shelf.held(chat(1, system=0)) == 60


@pytest.mark.parametrize("tier", ["ram", "disk"])
def test_the_end_of_a_conversation_goes_before_its_beginning(tier: str) -> None:
    """antirez/ds4#444: short prefixes, which the longer ones stand on, were evicted first."""
    shelf = Shelf(ram=100 * TOKEN) if tier == "ram" else Shelf(disk=100 * TOKEN)
    for seed in range(6):
        shelf.put(chat(seed, system=0), durable(f"chat {seed}") if tier == "disk" else NOBODY)
        if tier == "disk":
            shelf.restart()
        assert shelf.held(chat(seed, system=0)) == 60
        if seed:
            # The one before has lost its end, in whole pieces, and nothing else.
            assert shelf.held(chat(seed - 1, system=0)) == 32


def test_what_several_conversations_begin_with_outlives_newer_ones() -> None:
    shelf = Shelf(ram=200 * TOKEN)
    for seed in (1, 2):
        shelf.put(chat(seed, length=62, system=32), Belonging(owner=f"chat {seed}"))
    shelf.now += 3600
    for seed in range(3, 9):
        shelf.put(chat(seed, system=0), Belonging(owner=f"chat {seed}"))
    assert shelf.held(chat(1, length=62, system=32)) == 32
