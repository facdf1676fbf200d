// Documents that are dropped on the chat: offered to be added to the library and asked. Pictures
// and sounds keep their own way, and so does what is dropped on a sheet.
(() => {
  "use strict";
  const { find, boxIn, made, button, put, hasFiles, isSeenOrHeard, documents } = inglenook;

  const say = (...parts) => {
    find("#asks_note")?.remove();
    if (!parts.length) return null;
    const note = made("div", { id: "asks_note" }, ...parts);
    note.setAttribute("role", "status");
    find("#attached_strip")?.before(note);
    return note;
  };
  const add = async (files) => {
    const paths = [];
    const refused = [];
    for (const file of files) {
      say(`Copying ${file.name}…`);
      try {
        const answer = await documents.bring(file);
        if (answer.refused) refused.push(answer.refused);
        else paths.push(answer.added);
      } catch {
        refused.push(`${file.name} could not be brought to the app: try again. A folder is added by its path, under Documents.`);
      }
    }
    say(...refused);
    if (refused.length) find("#asks_note").classList.add("fault");
    if (!paths.length) return;
    put(boxIn("#asks_dropped"), JSON.stringify({ paths }));
    find("#composer textarea")?.focus();
  };
  const offer = (files) => {
    const what = files.length === 1 ? files[0].name : `${files.length} files`;
    const yes = button("Add and ask", null, () => add(files));
    say(made("span", {}, "Add ", made("bdi", { textContent: what }), " to your documents, and ask this conversation of it? It is copied into Inglenook's own folder."), yes, button("No", null, () => say()));
    yes.focus();
  };
  // A file that is asked may get another name, or go, while it is looked at.
  const LOOK_MS = 15000;
  let lookedAt = 0;
  const lookWhere = () => {
    const box = boxIn("#asks_told");
    if (document.hidden || !box || !find("#asks.chosen") || find("#asks:focus-within")) return;
    lookedAt = Date.now();
    put(box, String(lookedAt));
  };
  addEventListener("inglenook-state", () => Date.now() - lookedAt > LOOK_MS && lookWhere());
  addEventListener("focus", lookWhere);

  const isTaken = (event) => hasFiles(event) && !event.target.closest?.("dialog");
  addEventListener("dragover", (event) => isTaken(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    if (!isTaken(event)) return;
    event.preventDefault();
    const files = [...event.dataTransfer.files].filter((file) => !isSeenOrHeard(file));
    if (files.length) offer(files);
  });
})();
