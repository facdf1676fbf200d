"""The launcher: the parent of the app, which shows something at once and starts it again.

    launcher   the port, the splash, the window; a lock and a note of its own; needs no library
       |  orders, the listening socket            ^  what it is doing, that it is ready, wishes
       v                                          |
    app        `inglenook run`, with everything else; it may die

Everything comes in through one inbox, in the order in which it happened: what the app says, that it
has ended, what a person wishes, and the signals of the system.
"""

import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue

from app.cuda.environment import Environment, sweep_if_alone
from app.launch.child import Child, End, Said, own_command
from app.launch.crash import Crash, Suspect
from app.launch.folder import show_folder
from app.launch.link import Doing, Orders
from app.launch.program import choose, failed_start, failure_words
from app.launch.report import crash_report, keep_crash
from app.launch.splash import Splash
from app.launch.start import Options, Start
from app.launch.status import Problem, Status
from app.launch.watchdog import Close, Offer, StartAgain, Tell, Watchdog
from app.launch.window import Window
from app.launch.wish import Wish
from app.owner import HomeLock
from app.paths import Paths
from engine.errors import HomeBusy, HomeError

FAREWELL_S = 1.0
"""How long the splash says that the app was closed, for pages that ask."""
WAKE_S = 0.5
"""Windows hands over a signal only to a thread that is awake."""
STARTER = "starter"
TWICE = "It happened twice"
TWO_CAUSES = "It is the second crash within ten minutes, and the first had another cause"
STOPPED_IN_SAFE_MODE = (
    "{twice}, and in safe mode: choose another model or send the report to who can help,"
    " and try again."
)
STOPPED_TWICE = (
    "{twice}, so it is not started again by itself: start it in safe mode, which"
    " {safe}, or try again."
)
SAFE_WORDS = "uses little memory and no extras"
SAFE_STARTER_WORDS = f"{SAFE_WORDS}, and the starter model"


class Launcher:
    """Owned by the main thread, which runs `run`. `ask` may be called by anyone."""

    def __init__(
        self,
        paths: Paths,
        sock: socket.socket,
        lock: HomeLock | None,
        options: Options,
        say: Callable[[str], None],
        problem: str = "",
    ) -> None:
        """`lock` None: the home cannot be used, and `problem` says why."""
        self._paths = paths
        self._sock = sock
        self._lock = lock
        self._options = options
        self._say = say
        self._inbox: SimpleQueue[Said | End | Wish] = SimpleQueue()
        self._watchdog = Watchdog()
        self._child: Child | None = None
        self._next: Start | None = None
        """What is started when the app has ended; None: nothing."""
        self._is_quitting = False
        self._now = Start(is_safe=options.is_safe)
        self._crash: Crash | None = None
        self._environment = Environment(paths.cuda)
        self._is_for_card = False
        self._is_ready = False
        self._status = Status()
        if problem:
            self._tell(problem, (Wish.RESTART, Wish.QUIT))
        self.address = HomeLock.address(*sock.getsockname()[:2])
        self._splash = Splash(
            sock,
            self.address.token,
            lambda: self._status,
            self.ask,
            lambda: crash_report(paths),
        )
        self._window = Window(
            self.address.url, paths.browser, own_command(), say, was_seen=self._was_seen
        )

    def ask(self, wish: Wish) -> None:
        self._inbox.put(wish)

    def run(self) -> int:
        """Until somebody quits. Returns the exit code."""
        self._take_signals()
        self._splash.open()
        if self._lock is not None:
            try:
                self._lock.announce(self.address)
            except HomeError as error:
                self._tell(str(error), (Wish.RESTART, Wish.LOGS, Wish.QUIT))
        if self._options.opens_window:
            self._window.open()
        if self._lock is not None:
            threading.Thread(
                target=sweep_if_alone, args=(self._environment,), name="sweep", daemon=True
            ).start()
        if self._status.problem is None:
            self._start(self._now)
        else:
            self._say_problem(self._status.problem.sentence)
        while not self._is_over():
            match self._next_event():
                case None:
                    continue
                case Said() as said:
                    self._hear(said)
                case End() as end:
                    self._follow(end)
                case Wish() as wish:
                    self._grant(wish)
        return self._close()

    def _was_seen(self) -> bool:
        """Whether a window has fetched the page; an app that answers does not tell."""
        return self._splash.was_seen or not self._splash.is_open

    def _is_over(self) -> bool:
        return self._is_quitting and self._child is None

    def _next_event(self) -> Said | End | Wish | None:
        try:
            return self._inbox.get(timeout=WAKE_S)
        except Empty:
            return None

    def _start(self, start: Start) -> None:
        self._now = start
        self._is_ready = False
        if not self._has_home():
            return
        program = choose(
            self._environment,
            self._options.command or own_command(),
            is_safe=start.is_safe,
            failure=start.card_failure,
        )
        self._is_for_card = program.is_for_card
        self._status = Status(is_safe=start.is_safe, crash=start.crash, note=program.note)
        self._splash.open()
        command = [*program.command, *self._options.arguments(start)]
        orders = Orders(crash=start.crash, note=program.note)
        log = self._paths.native_log
        try:
            self._child = Child(
                command, self._sock, orders, log, self._inbox.put, program.environment
            )
        except OSError as error:
            reason = error.strerror or error
            if program.is_for_card:
                self._leave_card(f"its Python cannot be started: {reason}")
                return
            sentence = (
                f"Inglenook could not be started ({reason}): make room on the disk and in memory,"
                " and try again."
            )
            self._tell(sentence, (Wish.RESTART, Wish.LOGS, Wish.QUIT))
            self._say_problem(sentence)

    def _hear(self, said: Said) -> None:
        match said:
            case Said("doing", dict() as doing):
                self._status = replace(self._status, doing=Doing(**doing))
            case Said("ready", str() as url):
                self._is_ready = True
                self._splash.shut()
                if self._child is not None:
                    self._child.give_door()
                self._say(f"Inglenook is ready: {url}")
            case Said("ask", str() as wish):
                with suppress(ValueError):
                    self._grant(Wish(wish))

    def _grant(self, wish: Wish) -> None:
        match wish:
            case Wish.QUIT:
                self._is_quitting = True
                self._end_child(None)
            case Wish.RESTART:
                # Of an app that runs: as usual again. Of one that does not: what was tried before.
                usual = Start() if self._child else replace(self._now, crash="", card_failure="")
                self._begin_again(usual)
            case Wish.SAFE:
                self._begin_again(Start(is_safe=True, model=self._safe_model()))
            case Wish.SHOW:
                self._window.open()
            case Wish.LOGS:
                show_folder(self._paths.logs)

    def _begin_again(self, start: Start) -> None:
        self._watchdog.forgive()
        if not self._has_home():
            return
        if self._child is None:
            self._start(start)
        else:
            self._end_child(start)

    def _end_child(self, then: Start | None) -> None:
        self._next = then
        if self._child is not None:
            self._child.end()

    def _follow(self, end: End) -> None:
        self._child = None
        # From here on it is the launcher that answers.
        self._status = Status(is_safe=self._now.is_safe, is_over=self._is_quitting)
        self._splash.open()
        if self._is_quitting:
            return
        if self._next is not None:
            start, self._next = self._next, None
            self._start(start)
            return
        now = time.strftime("%Y-%m-%d %H:%M:%S")
        crash = failed_start(end, self._is_ready, now) if self._is_for_card else None
        if crash is not None:
            self._keep(crash)
            self._leave_card(crash.cause)
            return
        match self._watchdog.judge(end, now):
            case Close():
                self._is_quitting = True
                self._status = replace(self._status, is_over=True)
            case Tell(sentence):
                self._tell(sentence, (Wish.RESTART, Wish.LOGS, Wish.QUIT))
                self._say_problem(sentence)
            case StartAgain(crash):
                self._keep(crash)
                self._say(crash.sentence)
                self._start(replace(self._now, crash=crash.sentence))
            case Offer(crash, is_same):
                self._keep(crash)
                self._offer(crash, TWICE if is_same else TWO_CAUSES)

    def _leave_card(self, cause: str) -> None:
        """Start the app without what is installed for the card, until it is asked for again."""
        sentence = failure_words(cause)
        self._say(sentence)
        self._start(replace(self._now, crash="", card_failure=sentence))

    def _offer(self, crash: Crash, twice: str) -> None:
        """Ask how it goes on after several crashes."""
        if self._now.is_safe:
            sentence = f"{crash.sentence} {STOPPED_IN_SAFE_MODE.format(twice=twice)}"
            offers = [Wish.RESTART, Wish.LOGS, Wish.QUIT]
        else:
            safe = SAFE_STARTER_WORDS if self._safe_model() else SAFE_WORDS
            sentence = f"{crash.sentence} {STOPPED_TWICE.format(twice=twice, safe=safe)}"
            offers = [Wish.SAFE, Wish.RESTART, Wish.LOGS, Wish.QUIT]
        self._tell(sentence, offers, crash)
        self._say_problem(sentence)

    def _keep(self, crash: Crash) -> None:
        self._crash = crash
        with suppress(OSError, HomeError):
            # Without room for it the report is shorter.
            self._paths.create()
            keep_crash(self._paths.crashes, crash)

    def _safe_model(self) -> str:
        """The starter model, where the chosen one may be what crashes."""
        return STARTER if self._crash and self._crash.suspect is Suspect.MODEL else ""

    def _tell(self, sentence: str, offers: Sequence[str], crash: Crash | None = None) -> None:
        """Show what is wrong and what can be done about it."""
        detail = f"Suspect: the {crash.suspect.value}." if crash else ""
        shown = [*offers[:-1], "report", offers[-1]]
        problem = Problem(sentence=sentence, offers=tuple(map(str, shown)), detail=detail)
        self._status = Status(problem=problem)

    def _say_problem(self, sentence: str) -> None:
        """To the terminal; and where the page with the ways out of it is, if none shows it."""
        self._say(sentence)
        if not self._options.opens_window:
            self._say(f"Try again or quit at {self.address.url}, or quit here with Ctrl-C.")

    def _has_home(self) -> bool:
        """Whether the home is ours: perhaps only now, or again, where somebody deleted it."""
        try:
            self._paths.create()
            if self._lock is not None and not self._lock.is_lost:
                return True
            if self._lock is not None:
                self._lock.release()
                self._lock = None
            lock = HomeLock.of_launcher(self._paths)
            if not lock.try_acquire():
                raise HomeBusy(
                    f"Another Inglenook was started in {self._paths.data} meanwhile: use that one,"
                    " or quit it and try again."
                )
            self._lock = lock
            lock.announce(self.address)
        except HomeError as error:
            self._tell(str(error), (Wish.RESTART, Wish.QUIT))
            self._say_problem(str(error))
            return False
        return True

    def _take_signals(self) -> None:
        names = [signal.SIGINT, signal.SIGTERM]
        if hasattr(signal, "SIGHUP"):
            names.append(signal.SIGHUP)
        for name in names:
            signal.signal(name, lambda *_: self.ask(Wish.QUIT))

    def _close(self) -> int:
        time.sleep(FAREWELL_S)
        self._splash.shut()
        self._sock.close()
        if self._lock is not None:
            self._lock.release()
        return 0
