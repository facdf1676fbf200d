// The sheet of the user's own files: what its panels know, and what is being read meanwhile. The
// panels are added by the scripts that follow, in the order of their tabs.
(() => {
  "use strict";
  const { find, made, button, asJson, answerOf, asker, sheetOf } = inglenook;
  const ROOM = "/_app/documents";
  const LOOK_MS = 1000;
  // All places are counted anew for it, so not at each look.
  const LOOKS_A_COUNT = 3;

  const panels = [];
  let state = { places: [], collections: [], received: "", progress: { is_reading: false }, meaning: null };
  let looking = 0;
  let numLooks = 0;
  // What was said when the progress could not be asked for.
  let lost = "";

  const sheet = sheetOf({
    id: "documents",
    name: "Documents",
    tabs: panels,
    above: () => [progressPart()],
    prepared: (dialog) => dialog.addEventListener("close", () => clearTimeout(looking)),
  });
  const { say, show, current } = sheet;
  const ask = asker(ROOM, say);
  // The list as it is now; what is shown of it is drawn anew.
  const take = (next) => {
    if (!next) return;
    const { progress, added, ...rest } = next;
    state = { ...state, ...rest };
    panels.find(({ name }) => name === current()).draw?.();
    showProgress(progress);
  };
  const refresh = async () => take(await ask(""));
  // A dropped file, copied into the app's own folder. It throws where the file cannot be read, as a
  // folder cannot.
  const bring = async (file) => {
    const may = await answerOf(`${ROOM}/announce`, asJson({ name: file.name, num_bytes: file.size }));
    if (may.refused) return may;
    const reply = await fetch(`${ROOM}/drop?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
    return reply.json();
  };
  const look = (page, opener) => dispatchEvent(new CustomEvent("inglenook:passage", { detail: { ...page, opener } }));

  // ---- what is being read: asked for while there is something, paused or not, else not at all
  const showProgress = (progress) => {
    const was = state.progress.is_reading;
    state = { ...state, progress };
    const part = find("#documents_progress");
    part.hidden = !progress.is_reading;
    clearTimeout(looking);
    if (!progress.is_reading) {
      if (was) refresh();
      return;
    }
    part.querySelector("p").textContent = progress.words;
    const bar = part.querySelector("progress");
    if (progress.share === null) bar.removeAttribute("value");
    else bar.value = progress.share;
    const pressed = part.querySelector("button");
    pressed.textContent = progress.is_paused ? "Go on" : "Pause";
    pressed.ariaLabel = progress.is_paused ? "Go on reading" : "Pause reading";
    looking = setTimeout(follow, LOOK_MS);
  };
  // The figures alone: what somebody types into a list is not drawn away under their hands.
  const count = async () => {
    const next = await ask("");
    if (!next) return;
    const { progress, ...rest } = next;
    state = { ...state, ...rest };
    panels.find(({ name }) => name === current()).count?.();
  };
  const follow = async () => {
    if (!sheet.isOpen()) return;
    const progress = await ask("/progress");
    const note = find("#documents_said");
    if (!progress) {
      // It may answer again: the reading goes on whether this hears of it or not.
      lost = note.textContent;
      clearTimeout(looking);
      looking = setTimeout(follow, LOOK_MS);
      return;
    }
    if (lost && note.textContent === lost) say("");
    lost = "";
    numLooks += 1;
    if (progress.is_reading && numLooks % LOOKS_A_COUNT === 0) await count();
    showProgress(progress);
  };
  const progressPart = () => {
    const bar = made("progress", { max: 1, ariaLabel: "Progress of the file that is being read" });
    const hold = button("Pause", "Pause reading", async () => {
      const next = await ask(state.progress.is_paused ? "/go_on" : "/pause", {});
      if (next) showProgress(next);
    });
    return made("div", { id: "documents_progress", hidden: true }, made("p"), bar, hold);
  };

  addEventListener("click", (event) => {
    if (!event.target.closest?.("#open_documents")) return;
    sheet.open();
    refresh();
  });
  // Whoever comes back from a folder has perhaps put something there.
  addEventListener("focus", () => {
    if (sheet.isOpen() && !state.progress.is_reading && !find("#documents .question, #documents .naming")) refresh();
  });

  const documents = { state: () => state, say, ask, take, bring, show, current, look, showProgress, add: (panel) => panels.push(panel) };
  window.inglenook = Object.freeze({ ...inglenook, documents: Object.freeze(documents) });
})();
