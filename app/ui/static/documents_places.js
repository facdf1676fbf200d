// The places of the documents: folders and files that are read where they lie, and files that are
// dropped, which are copied.
(() => {
  "use strict";
  const { find, made, button, quiet, picker, zoneOf, documents, documentRows } = inglenook;
  const { state, say, ask, take, show, bring } = documents;
  const { nameOf, whereOf, rowOf, question, removal, again, pictures, asking, collecting, counts } = documentRows;

  const figures = new Map();
  const heldIn = (place) => (place.counts.length ? `${place.total}: ${counts(place.counts)}` : place.total);
  const placeRow = (place) => {
    const files = button("Files", `Files of ${place.name}`, () => show("files", { place: place.path }));
    const held = made("p", { textContent: heldIn(place) });
    figures.set(place.path, held);
    const body = made("div", { className: "body" }, nameOf(place), whereOf(place), held, place.pictures && made("p", { className: "quiet", textContent: place.pictures }), !place.is_there && made("p", { className: "wrong", textContent: "It is not there now. What was read of it is kept, and can be found." }), collecting(place));
    return rowOf(place, body, made("div", { className: "actions" }, files, asking(place), place.has_ocr && pictures(place), again(place), removal(place)));
  };
  const draw = () => {
    const list = find("#documents_list");
    figures.clear();
    list.replaceChildren(...state().places.map(placeRow));
    drawMeaning();
    if (!state().places.length) list.append(made("li", { className: "quiet", textContent: "Nothing is here yet. Add a folder or a file: it is read on this computer, and can then be searched." }));
  };
  const count = () => {
    for (const place of state().places) {
      const held = figures.get(place.path);
      if (held) held.textContent = heldIn(place);
    }
  };

  // ---- by what is searched
  const FILE = "\n";
  const drawMeaning = () => {
    const row = find("#documents_meaning");
    const meaning = state().meaning;
    // What is asked or typed there now stays.
    if (!meaning || row.querySelector(".question, .naming input:focus")) return;
    const options = [...meaning.models.map(({ model, words }) => [words, model]), ["by a GGUF file…", FILE]];
    const select = picker(options, meaning.chosen, { ariaLabel: "By what is searched" });
    select.addEventListener("change", async () => {
      if (select.value !== FILE) {
        const model = select.value;
        select.value = meaning.chosen;
        await question(model, "/embedder", "Yes, choose it", row);
        return;
      }
      const path = made("input", { type: "text", placeholder: "/path/to/model.gguf", ariaLabel: "Path of an embedding model" });
      const form = made("form", { className: "naming" }, path, made("button", { type: "submit", textContent: "Try it" }));
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        question(path.value, "/embedder", "Yes, choose it", row);
      });
      select.replaceWith(form);
      path.focus();
    });
    row.replaceChildren(made("label", {}, "Search ", select), quiet(meaning.words), meaning.problem && made("p", { className: "wrong", textContent: meaning.problem }));
  };

  const parts = () => {
    const path = made("input", { type: "text", id: "document_path", placeholder: "/path/to/folder or file", ariaLabel: "Path of a folder or a file" });
    const add = made("button", { type: "submit", textContent: "Add by its path" });
    const form = made("form", { className: "asking" }, path, add);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      // The next path may be typed while this one is looked at.
      const typed = path.value;
      path.value = "";
      const row = quiet(`Looking at ${typed}…`);
      coming.append(row);
      const next = await ask("/add", { path: typed });
      row.remove();
      if (next) return take(next);
      if (!path.value) path.value = typed;
    });
    return [form, quiet("The files stay where they are. A folder is read with all folders in it, and what changes there is noticed."), zone, made("ul", { className: "rows", id: "documents_list" }), made("div", { id: "documents_meaning" })];
  };

  // ---- files that are dropped: a browser tells no path, so they are copied
  const coming = made("div", { id: "documents_coming" });
  const copy = async (file) => {
    const row = quiet(`Copying ${file.name}…`);
    coming.append(row);
    try {
      const answer = await bring(file);
      if (!answer.refused) return answer;
      say(answer.refused);
    } catch {
      say(`${file.name} broke off, and nothing of it is kept: choose it again. A folder is added by its path.`);
    } finally {
      row.remove();
    }
    return null;
  };
  const takeFiles = async (files) => {
    say("");
    // One after the other: a disk is not faster for two.
    for (const file of files) take(await copy(file));
  };
  const HINT = "A browser tells no path, so a dropped file is copied into Inglenook's own folder of received documents: a later change of yours is not seen there.";
  const zone = made("div", { id: "documents_drop" }, coming, zoneOf({ words: "Drop files here, or ", text: "Choose files…", label: "Choose files to copy", hint: HINT, multiple: true, id: "document_file" }, takeFiles));

  documents.add({ name: "places", title: "Places", parts, show: draw, draw, count, take: takeFiles });
})();
