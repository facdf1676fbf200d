"""Decide what the next step computes: continuous batching over the seats of the KV memory.

Whoever writes gets a token in every step; what is left of the step reads prompts, in pieces, so
that a long prompt delays the others by no more than one piece. A finished request leaves at once
and a waiting one takes its place in the next step. When the cells run out the youngest goes back
to the queue, and nobody is admitted until somebody has left: so the oldest always goes on.

Background requests run when nobody else wants to, and step aside at once. A reproducible request
runs alone: it waits until the others have left, and whoever comes meanwhile waits for it.

A picture in a prompt is read as soon as it has been looked at, which is done elsewhere meanwhile.
"""

from collections import deque
from collections.abc import Iterator

from engine.backends.base import MediaReader
from engine.batch import Batch, ScheduledRequest
from engine.kv.seats import Seats
from engine.request import GRID_TOKENS, Request, RequestStatus

# How long a piece of a prompt may delay those who write, in seconds.
PIECE_SECONDS = 0.15
MIN_PIECE_TOKENS = 16
# Of a model whose steps cannot be ended early: how many such pieces one reads at most.
MOST_PIECES = 2
# How long KV that comes back from the store may delay those who write, in seconds a step.
RETURN_SECONDS = 0.05
# Room beside a prompt that makes admission worthwhile; the answer may need more later.
ADMISSION_HEADROOM = 32


class Scheduler:
    """Owned by the engine thread. Holds every request that is not finished."""

    def __init__(
        self,
        seats: Seats,
        *,
        max_running: int,
        max_batch_tokens: int,
        media: MediaReader | None = None,
    ) -> None:
        self._seats = seats
        self._media = media
        self._max_running = max_running
        self._max_batch_tokens = max_batch_tokens
        self._piece_tokens = 4 * MIN_PIECE_TOKENS
        self._waiting: deque[Request] = deque()
        self._background: deque[Request] = deque()
        self._running: list[Request] = []
        # Of those that run: asked in every step, and mostly empty.
        self._aside: list[Request] = []
        self._returning: list[Request] = []
        self._is_crowded = False

    @property
    def has_work(self) -> bool:
        return bool(self._running or self._waiting or self._background)

    @property
    def num_running(self) -> int:
        return len(self._running)

    @property
    def num_waiting(self) -> int:
        return len(self._waiting) + len(self._background)

    @property
    def num_foreground(self) -> int:
        """Requests that somebody waits for."""
        return len(self._waiting) + sum(
            not request.options.is_in_background for request in self._running
        )

    @property
    def is_writing(self) -> bool:
        """Somebody waits for the next token."""
        return any(
            not (request.is_prefilling or request.options.is_in_background)
            for request in self._running
        )

    @property
    def is_waiting_for_media(self) -> bool:
        """Nothing can be computed before a picture has been looked at."""
        return bool(self._running) and all(
            request.is_prefilling and request.spans and self._waits_for_media(request)
            for request in self._running
        )

    @property
    def running(self) -> tuple[Request, ...]:
        return tuple(self._running)

    def add(self, request: Request) -> None:
        self._queue_of(request).append(request)

    def finish(self, request: Request) -> None:
        """Take a request out, wherever it stands. What it computed stays held."""
        if request.status is RequestStatus.RUNNING:
            self._leave(request)
            self._is_crowded = False
        elif request.status is RequestStatus.WAITING:
            self._queue_of(request).remove(request)
        request.status = RequestStatus.FINISHED

    def requeue(self, request: Request) -> None:
        """Back to the front of its queue; what is still held of it then is not computed again."""
        self._leave(request)
        request.num_computed_tokens = 0
        request.draft = ()
        request.num_preemptions += 1
        request.status = RequestStatus.WAITING
        self._queue_of(request).appendleft(request)

    def preempt(self, request: Request) -> None:
        """Requeue it because there is no room, and admit nobody until somebody has left."""
        self.requeue(request)
        self._is_crowded = True

    def schedule(self) -> Batch:
        """The next step. Empty when nothing runs and nothing that waits can be seated, or when
        all that runs is still coming back from the store."""
        self._step_aside()
        self._admit()
        self._bring_back()
        scheduled: list[ScheduledRequest] = []
        budget = self._max_batch_tokens
        if not self._seats.can_cut:
            budget = min(budget, MOST_PIECES * self._piece_tokens)
        for request in list(self._running):
            # An earlier one of this loop may have preempted it.
            is_writing = request.status is RequestStatus.RUNNING and not request.is_prefilling
            if is_writing and (item := self._write(request, budget)):
                scheduled.append(item)
                budget -= item.num_scheduled_tokens
        if scheduled:
            budget = min(budget, self._piece_tokens)
        for request, num_tokens in self._pieces(budget):
            if self._seats.extend(request, num_tokens):
                scheduled.append(ScheduledRequest.of(request, num_tokens))
            elif not scheduled and len(self._running) > 1:
                self.preempt(self._running[-1])
                return self.schedule()
        return Batch(tuple(scheduled))

    def learn_speed(self, num_tokens: int, seconds: float) -> None:
        """Size the pieces so that one takes about `PIECE_SECONDS`."""
        if num_tokens >= MIN_PIECE_TOKENS and seconds > 0:
            fitting = num_tokens * PIECE_SECONDS / seconds
            blended = 0.5 * self._piece_tokens + 0.5 * fitting
            self._piece_tokens = int(max(MIN_PIECE_TOKENS, min(self._max_batch_tokens, blended)))

    def _leave(self, request: Request) -> None:
        for each in (self._running, self._aside, self._returning):
            if request in each:
                each.remove(request)
        self._seats.release(request)

    def _queue_of(self, request: Request) -> deque[Request]:
        return self._background if request.options.is_in_background else self._waiting

    def _step_aside(self) -> None:
        """What runs in the background goes back to its queue as soon as somebody waits."""
        if self._aside and self.num_foreground:
            for request in self._aside[::-1]:
                self.requeue(request)

    def _admit(self) -> None:
        if self._is_crowded and self._running:
            return
        self._is_crowded = False
        while len(self._running) < self._max_running:
            queue = self._background if not self.num_foreground else self._waiting
            if not queue or not self._may_join(queue[0]):
                return
            request = queue[0]
            # The last request of all may use the cells to the brim.
            headroom = ADMISSION_HEADROOM if self._running else 0
            promised = sum(_num_left(running) for running in self._running)
            if not self._seats.admit(request, promised + headroom):
                return
            queue.popleft()
            if request.num_preemptions == 0:
                # A preempted request must not count its own KV as a hit.
                held = min(request.num_computed_tokens, request.num_prompt_tokens)
                request.num_cached_tokens = held
            request.status = RequestStatus.RUNNING
            self._running.append(request)
            if request.options.is_in_background:
                self._aside.append(request)
            if self._seats.is_returning(request):
                self._returning.append(request)

    def _may_join(self, request: Request) -> bool:
        if not self._running:
            return True
        return not (request.options.is_reproducible or self._running[0].options.is_reproducible)

    def _bring_back(self) -> None:
        """KV from the store, in pieces while others write."""
        if not self._returning:
            return
        seconds = RETURN_SECONDS if self.is_writing else None
        for request in self._returning:
            self._seats.bring_back(request, seconds)
        self._returning = [each for each in self._returning if self._seats.is_returning(each)]

    def _write(self, request: Request, budget: int) -> ScheduledRequest | None:
        """Its newest tokens, and what was guessed, if there is room that nobody needs. None: there
        is no room at all, and it was the youngest."""
        # Each of the others needs one place at least.
        most = max(1, budget - len(self._running))
        num_left, draft = _num_left(request), request.draft
        num_spare = self._seats.num_free_cells - len(self._running)
        if draft and num_left + len(draft) <= min(most, num_spare):
            self._seats.extend(request, num_left + len(draft))
            return ScheduledRequest.of(request, num_left, draft)
        num_left = min(num_left, most)
        if not self._extend_or_preempt(request, num_left):
            return None
        return ScheduledRequest.of(request, num_left)

    def _extend_or_preempt(self, request: Request, num_tokens: int) -> bool:
        """Room for more tokens, at the cost of the youngest. False: it was the youngest."""
        while not self._seats.extend(request, num_tokens):
            youngest = self._running[-1]
            self.preempt(youngest)
            if youngest is request:
                return False
        return True

    def _pieces(self, budget: int) -> Iterator[tuple[Request, int]]:
        """Share the budget among prompts: half to the oldest, so that it ends, the rest to the
        shortest, so that a quick question need not wait behind a book."""
        prefilling = [
            request
            for request in self._running
            if request.is_prefilling
            and request not in self._returning
            and not (request.spans and self._waits_for_media(request))
        ]
        if not prefilling:
            return
        oldest, *others = prefilling
        others.sort(key=_num_left)
        shares = {id(oldest): min(_num_left(oldest), budget // 2 if others else budget)}
        left = budget - shares[id(oldest)]
        for request in others:
            shares[id(request)] = min(_num_left(request), left)
            left -= shares[id(request)]
        shares[id(oldest)] += min(_num_left(oldest) - shares[id(oldest)], left)
        for request in prefilling:
            if shares[id(request)] > 0:
                yield request, self._piece(request, shares[id(request)])

    def _waits_for_media(self, request: Request) -> bool:
        """Its next tokens are places of a picture that nobody has looked at yet."""
        span = request.next_span
        if span is None or self._media is None:
            return False
        # Asked for while the text before it is read.
        is_ready = self._media.is_ready(span)
        return not is_ready and span.start <= request.num_computed_tokens

    def _piece(self, request: Request, share: int) -> int:
        """How many tokens of its share a prompt really reads now."""
        start = request.num_computed_tokens
        span = request.next_span
        if span is not None and span.start <= start:
            if span.is_whole:
                return span.end - start
            share = min(share, span.end - start)
        elif span is not None:
            share = min(share, span.start - start)
        if request.options.is_reproducible:
            return min(share, GRID_TOKENS - start % GRID_TOKENS)
        if not self._seats.can_cut:
            ends = (place for place in request.checkpoints if start < place < start + share)
            return min(ends, default=start + share) - start
        return share


def _num_left(request: Request) -> int:
    return request.num_tokens - request.num_computed_tokens
