// Quitting, starting again, and the report: what the page asks of the launcher.
(() => {
  "use strict";
  const { find, made, button } = inglenook;
  const post = (path) => fetch(path, { method: "POST" });

  // ---- a question over the page; the browser keeps the focus inside and closes it with Escape
  const ask = (sentence, yes, no) =>
    new Promise((answer) => {
      const first = button(yes, null, () => sheet.close("yes"));
      first.className = "first";
      const row = made("div", {}, button(no, null, () => sheet.close("")), first);
      const sheet = made("dialog", { id: "question" }, made("p", { textContent: sentence }), row);
      sheet.addEventListener("close", () => {
        answer(sheet.returnValue === "yes");
        sheet.remove();
      });
      document.body.append(sheet);
      sheet.showModal();
    });
  const show = (sentence) => find("#start_words")?.replaceChildren(sentence);

  const quit = async () => {
    const reply = await post("/_app/quit");
    if (reply.status === 409) {
      const { writing } = await reply.json();
      if (!(await ask(`Quit Inglenook? ${writing}`, "Quit anyway", "Go on writing"))) return;
      await post("/_app/quit?anyway=1");
    }
    find("#quit_app").textContent = "Closing…";
    // A window of the app's own goes with it; a tab of a browser stays, and says so.
    if (matchMedia("(display-mode: standalone)").matches) window.close();
  };
  const copyReport = async () => {
    const text = await (await fetch("/_app/report", { cache: "no-store" })).text();
    await navigator.clipboard.writeText(text);
    find("#copy_report").textContent = "Copied";
  };

  // ---- a note that was read stays away in this tab; its words have the moment in them
  const SEEN = "inglenook_start_note";
  const words = () => find("#start_words")?.textContent.trim() ?? "";
  const hideIfSeen = () => {
    const note = find("#start_note");
    if (note && words() && sessionStorage.getItem(SEEN) === words()) note.hidden = true;
  };
  const ACTIONS = {
    "#quit_app": quit,
    "#start_as_usual": () => {
      show("Starting again…");
      return post("/_app/restart");
    },
    "#copy_report": copyReport,
    "#dismiss_note": async () => {
      sessionStorage.setItem(SEEN, words());
      hideIfSeen();
    },
  };
  addEventListener("click", (event) => {
    for (const [selector, act] of Object.entries(ACTIONS)) {
      // An app that has gone in the meantime is said by the page itself.
      if (event.target.closest(selector)) act().catch(() => {});
    }
  });
  new MutationObserver(hideIfSeen).observe(document.documentElement, { subtree: true, childList: true });
})();
