// What only the browser can do: theme, shortcuts, exact copies, and saying when the app is gone.
(() => {
  "use strict";
  const { find, boxIn, made, button, put } = inglenook;
  const NARROW = 700;

  // ---- light and dark: the choice is kept; without one the system decides
  const THEME = "inglenook_theme";
  const setDark = (isDark) => document.body.classList.toggle("dark", isDark);
  const chosen = () => localStorage.getItem(THEME);
  const onTheme = () => {
    if (chosen()) setDark(chosen() === "dark");
  };
  const toggleTheme = () => {
    localStorage.setItem(THEME, setDark(!document.body.classList.contains("dark")) ? "dark" : "light");
  };

  // ---- copies: render.py spells special characters as five-digit entities, here they are undone
  const asTyped = (text) =>
    text
      .replace(/^<p class="shown">.*?<\/p>\n\n/, "")
      .replace(/\n\n(<p class="(note( failed)?|figures)">.*?<\/p>)+$/, "")
      .replace(/\n\n<p class="looked">.*?<\/p>$/, "")
      .replace(/<a class="cite" href="#passage-[^"]*?-(\d+)-\d+"[^>]*>.*?<\/a>/g, "[$1]")
      .replace(/<span class="unfound"[^>]*>|<\/span>/g, "")
      .replace(/&#x(0[0-9A-F]{4});/g, (_, digits) => String.fromCodePoint(parseInt(digits, 16)));
  if (navigator.clipboard) {
    const write = navigator.clipboard.writeText.bind(navigator.clipboard);
    navigator.clipboard.writeText = (text) => write(asTyped(text));
  }

  // ---- sentences: the library shows no error of an event that went past its queue
  const tell = (sentence) => {
    find("#told")?.remove();
    const note = made("div", { id: "told" }, sentence, button("Close", null, () => note.remove()));
    note.setAttribute("role", "alert");
    document.body.append(note);
    setTimeout(() => note.remove(), 15000);
  };
  const plainFetch = window.fetch.bind(window);
  // The library cuts its stream when the page is left, and then says that the connection is lost.
  // The browser closes it with the page.
  const uncut = (resource) =>
    resource instanceof Request && resource.url.includes("/queue/data?")
      ? new Request(resource, { signal: null })
      : resource;
  window.fetch = async (resource, options) => {
    const reply = await plainFetch(uncut(resource), options);
    if (reply.status >= 400 && new URL(reply.url).pathname.endsWith("/run/predict")) {
      const body = await reply.clone().json().catch(() => ({}));
      tell(body.error ?? "That did not work. What was said is kept.");
    }
    return reply;
  };

  // ---- names for what the page library leaves without one
  const NAMES = {
    "#composer .submit-button": "Send",
    "#composer .stop-button": "Stop",
    "#left > .toggle-button": "Conversations",
    "#right > .toggle-button": "Settings",
    "#meter meter": "Context in use",
    "#saw pre": "The prompt",
    "#version_before": "The answer before",
    "#version_after": "The answer after",
  };
  const ROLES = {
    "#saw": ["dialog", "What the model saw"],
    "#form_dialog": ["dialog", "How the next answers come"],
    "#this_machine": ["dialog", "This machine"],
    "#overflow": ["alertdialog", "The context is full"],
  };
  const nameControls = () => {
    for (const [selector, name] of Object.entries(NAMES)) {
      const control = find(selector);
      if (control && control.ariaLabel !== name) {
        control.ariaLabel = control.title = name;
      }
    }
    for (const [selector, [role, name]] of Object.entries(ROLES)) {
      const part = find(selector);
      if (part && part.role !== role) {
        part.role = role;
        part.ariaLabel = name;
        if (role === "dialog") part.ariaModal = "true";
      }
    }
    // The arrow sits inside the button that opens the thoughts; it is no second one.
    for (const arrow of document.querySelectorAll("#chat .thought-group .title button")) {
      arrow.tabIndex = -1;
      arrow.ariaHidden = "true";
    }
    // The library's label of a message is its source text; a reader should hear what is shown.
    for (const message of document.querySelectorAll("#chat [data-testid][aria-label]")) {
      message.removeAttribute("aria-label");
    }
  };

  // ---- what the model saw: a link below an answer names it, and the page is asked
  const SAW = "#saw-";
  let opener = null;
  const lookInto = (link) => {
    const box = boxIn("#saw_asked");
    if (!box) return;
    opener = link;
    put(box, link.hash.slice(SAW.length));
  };
  const isShown = (part) => Boolean(part?.checkVisibility());

  // ---- sheets over the page: the focus goes in and stays there, and comes back to what opened them
  const SHEETS = [
    { part: "#saw", first: "#saw_close", opener: () => opener },
    { part: "#this_machine", first: "#machine_close", opener: () => find("#machine_open") },
    { part: "#form_dialog", first: "#form_way input:checked", opener: () => find("#answer_as") },
  ];
  const moveFocus = () => {
    for (const sheet of SHEETS) {
      const isOpen = isShown(find(sheet.part)) && isShown(find(sheet.first));
      if (isOpen === Boolean(sheet.isOpen)) continue;
      sheet.isOpen = isOpen;
      (isOpen ? find(sheet.first) : sheet.opener())?.focus();
    }
  };
  const STOPS = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  const stayInside = (event) => {
    const sheet = SHEETS.map(({ part }) => find(part)).find(isShown);
    if (!sheet) return;
    const stops = [...sheet.querySelectorAll(STOPS)].filter((stop) => isShown(stop) && !stop.disabled);
    const [first, last] = [stops.at(0), stops.at(-1)];
    const isAt = (edge) => document.activeElement === edge || !sheet.contains(document.activeElement);
    if (isAt(event.shiftKey ? first : last)) {
      event.preventDefault();
      (event.shiftKey ? last : first)?.focus();
    }
  };

  // ---- stopping: the button comes a moment after the message is on its way
  const SOON = 10000;
  let sentAt = -SOON;
  let stopAt = -SOON;
  const isRecent = (moment) => performance.now() - moment < SOON;
  const noteSent = () => {
    sentAt = performance.now();
    stopAt = -SOON;
  };
  const isAnswering = () => Boolean(find("#composer .stop-button")) || isRecent(sentAt);
  const stop = () => {
    const button = find("#composer .stop-button");
    if (button) button.click();
    else if (isRecent(sentAt)) {
      stopAt = performance.now();
      // Asked once: the next Escape is meant for what else is open.
      sentAt = -SOON;
    }
  };
  const stopIfAsked = () => {
    const button = find("#composer .stop-button");
    if (!button) return;
    sentAt = -SOON;
    if (!isRecent(stopAt)) return;
    stopAt = -SOON;
    button.click();
  };

  // ---- the end of the chat stays in sight when the room for it changes
  const NEAR = 60;
  let chat = null;
  let room = 0;
  let isAtEnd = true;
  const noteEnd = () => {
    // In a new room the place is an accident; only where the reader went counts.
    if (chat.clientWidth * chat.clientHeight !== room) return;
    isAtEnd = chat.scrollHeight - chat.scrollTop - chat.clientHeight < NEAR;
  };
  const sizes = new ResizeObserver(() => {
    room = chat.clientWidth * chat.clientHeight;
    if (isAtEnd) chat.scrollTop = chat.scrollHeight;
  });
  const keepEnd = () => {
    const found = find("#chat .bubble-wrap");
    if (!found || found === chat) return;
    sizes.disconnect();
    chat = found;
    isAtEnd = true;
    chat.addEventListener("scroll", noteEnd, { passive: true });
    sizes.observe(chat);
  };

  // ---- keys
  const isInPlay = (part) => part.contains(document.activeElement);
  const closeSettings = () => {
    const settings = find("#right.open");
    const button = find("#right > .toggle-button");
    // An answer is stopped first, unless the reader is busy in the settings.
    if (!settings || (isAnswering() && !isInPlay(settings))) return false;
    if (isInPlay(settings)) button.focus();
    button.click();
    return true;
  };
  const onEscape = (event) => {
    // The key ends a composition of letters, or closes a list of choices.
    if (event.isComposing || event.target.ariaExpanded === "true" || find("dialog[open]")) return;
    if (isShown(find("#saw"))) find("#saw_close")?.click();
    else if (isShown(find("#this_machine"))) find("#machine_close")?.click();
    else if (isShown(find("#form_cancel"))) find("#form_cancel").click();
    else if (isShown(find("#overflow_cancel"))) find("#overflow_cancel").click();
    else if (!closeSettings()) stop();
  };
  const isSending = (event) =>
    event.key === "Enter" && !event.shiftKey && event.target.closest?.("#composer") && event.target.value?.trim();
  const onKey = (event) => {
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    if (command && event.shiftKey && key === "o") {
      event.preventDefault();
      find("#new_chat")?.click();
    } else if (command && !event.shiftKey && key === "k") {
      event.preventDefault();
      if (!find("#left.open")) find("#left > .toggle-button")?.click();
      find("#search textarea, #search input")?.focus();
    } else if (event.key === "Tab") {
      stayInside(event);
    } else if (event.key === "Escape") {
      onEscape(event);
    } else if (isSending(event)) {
      noteSent();
    }
  };
  const closeList = () => {
    if (innerWidth < NARROW) find("#left.open > .toggle-button")?.click();
  };
  // Something else has sent the reader to the chat.
  addEventListener("inglenook:chat", () => {
    closeList();
    find("#composer textarea")?.focus();
  });
  // A window that is made narrow would leave the list lying over the chat.
  matchMedia(`(max-width: ${NARROW - 1}px)`).addEventListener("change", closeList);
  const onClick = (event) => {
    const link = event.target.closest(`#chat a[href^="${SAW}"]`);
    if (link) {
      event.preventDefault();
      lookInto(link);
    }
    if (event.target.closest("#theme_toggle")) toggleTheme();
    if (event.target.closest("#composer .submit-button, #regenerate, #chat .example")) {
      noteSent();
    }
    if (event.target.closest("#new_chat, #conversations label")) {
      stopAt = sentAt = -SOON;
      closeList();
      find("#composer textarea")?.focus();
    }
  };

  // ---- a number of a list stands left of it, where a message is cut off: there must be room
  const makeRoomForNumbers = () => {
    for (const list of document.querySelectorAll("#chat .message-content ol")) {
      const digits = String(list.start + list.children.length - 1).length;
      if (list.style.getPropertyValue("--digits") !== String(digits)) {
        list.style.setProperty("--digits", digits);
      }
    }
  };

  // ---- a message that was not sent yet survives a reload
  const DRAFT = "inglenook_draft";
  const keepDraft = () => sessionStorage.setItem(DRAFT, find("#composer textarea")?.value ?? "");
  const restoreDraft = () => {
    const draft = sessionStorage.getItem(DRAFT);
    const box = find("#composer textarea");
    if (!draft || !box || box.value) return;
    put(box, draft);
  };

  // ---- a chat that will be opened again is not preceded by the first page: page.css holds it back
  const OPEN = "inglenook_was_open";
  const keepOpen = () => localStorage.setItem(OPEN, isShown(find("#header")) ? "yes" : "");
  document.documentElement.classList.toggle("opens_again", Boolean(localStorage.getItem(OPEN)));

  // ---- what was said in another tab: the page compares, and follows where this one is behind
  // By then a message of this tab's own is followed already.
  const BEHIND_MS = 700;
  let turns = null;
  const noteTurns = (count) => {
    const isNew = turns !== null && turns !== count;
    turns = count;
    if (!isNew) return;
    setTimeout(() => {
      const box = boxIn("#turns_told");
      if (!box) return;
      put(box, count);
    }, BEHIND_MS);
  };

  // ---- is the app still there, and is it the same one?
  let instance = null;
  let misses = 0;
  const say = (sentence) => {
    let banner = find("#lost");
    if (!sentence) return banner?.remove();
    if (!document.body) return;
    if (!banner) {
      banner = made("div", { id: "lost" });
      banner.setAttribute("role", "alert");
      document.body.append(banner);
    }
    if (banner.textContent !== sentence) banner.textContent = sentence;
  };
  const CLOSED =
    "Inglenook was closed. What was said is kept: start it again, and this page goes on by itself.";
  // The launcher answers while the app does not; what it has to ask stands on its own page.
  let wasAway = false;
  const waitFor = (state) => {
    wasAway = true;
    if (state.problem) return location.reload();
    const cause = state.starting?.crash ?? "";
    say(state.closed ? CLOSED : `${cause} Inglenook is starting again; this page goes on by itself.`.trim());
    setTimeout(look, 300);
  };
  const look = async () => {
    try {
      const reply = await fetch("/_app/state", { cache: "no-store" });
      if (!reply.ok) throw new Error(String(reply.status));
      const state = await reply.json();
      if (!state.instance) return waitFor(state);
      if (wasAway || (instance && instance !== state.instance)) return location.reload();
      instance = state.instance;
      noteTurns(state.turns);
      dispatchEvent(new CustomEvent("inglenook-state", { detail: state }));
      misses = 0;
      say("");
    } catch {
      misses += 1;
      if (misses >= 2) say(CLOSED);
    }
    setTimeout(look, misses ? 1000 : 3000);
  };

  const started = () => {
    nameControls();
    makeRoomForNumbers();
    keepEnd();
    closeList();
    restoreDraft();
    onTheme();
    new MutationObserver(() => {
      nameControls();
      stopIfAsked();
      moveFocus();
      makeRoomForNumbers();
      keepEnd();
    }).observe(document.body, {
      subtree: true,
      childList: true,
      attributes: true,
      attributeFilter: ["aria-label"],
    });
  };
  // At once: the app may go while this page is still being built.
  look();
  const waiting = setInterval(() => {
    if (document.body) onTheme();
    if (!find("#composer textarea") || !find("#left.open")) return;
    clearInterval(waiting);
    started();
  }, 50);
  addEventListener("keydown", onKey);
  // Before the page's own handlers: the library keeps a click on a link within the page to itself.
  addEventListener("click", onClick, true);
  addEventListener("pagehide", keepDraft);
  addEventListener("pagehide", keepOpen);
})();
