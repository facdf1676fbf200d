// The files of the documents: what was read of each, narrowed as the reader likes.
(() => {
  "use strict";
  const { find, made, button, quiet, documents, documentRows } = inglenook;
  const { state, say, ask, current, look, showProgress } = documents;
  const { nameOf, whereOf, rowOf, removal, again, pictures, asking: askOf, collecting, choice, collectionChoice, counts } = documentRows;
  const TYPING_MS = 250;
  const ALL = { place: "", collection: "", state: "", name: "" };

  let wanted = ALL;
  let asking = 0;

  const unlocking = (file) => {
    const password = made("input", { type: "password", autocomplete: "off", placeholder: "Password", ariaLabel: `Password of ${file.name}` });
    const form = made("form", { className: "naming" }, password, made("button", { type: "submit", textContent: "Open with it" }), quiet("It is not kept."));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      const next = await ask("/unlock", { path: file.path, password: password.value });
      if (next) showProgress(next);
      draw();
    });
    return form;
  };
  const fileRow = (file) => {
    const isOurs = file.is_received;
    const open = file.document && button("Open", `Open ${file.name}`, (pressed) => look({ document: file.document, number: 1 }, pressed));
    const facts = made("p", { className: "facts" }, made("span", { className: file.is_sound ? "" : "state", textContent: file.words }), file.pages && made("span", { textContent: file.pages }));
    const body = made("div", { className: "body" }, nameOf(file), whereOf(file), facts, file.message && made("p", { className: file.is_sound ? "quiet" : "wrong", textContent: file.message }), file.needs_password && unlocking(file), collecting(file));
    return rowOf(file, body, made("div", { className: "actions" }, open, file.document && askOf(file), file.has_ocr && pictures(file), again(file), isOurs && removal(file)));
  };
  const draw = async () => {
    const turn = ++asking;
    const found = await ask("/files", wanted);
    // What was typed meanwhile asks for other files.
    if (!found || turn !== asking || current() !== "files") return;
    const panel = find("#documents_files");
    const states = [[`all states (${found.total.toLocaleString("en")})`, ""], ...found.counts.map((each) => [`${each.words} (${each.num.toLocaleString("en")})`, each.state])];
    if (wanted.state && !states.some(([, each]) => each === wanted.state)) states.push(["none of these", wanted.state]);
    const narrow = (more) => {
      wanted = { ...wanted, ...more };
      draw();
    };
    const choices = made("div", { className: "choices" },
      choice("State", states, wanted.state, (value) => narrow({ state: value })),
      choice("Place", [["in all places", ""], ...state().places.map((place) => [`in ${place.name}`, place.path])], wanted.place, (value) => narrow({ place: value })),
      collectionChoice(wanted.collection, (value) => narrow({ collection: value })));
    const said = found.num_found > found.files.length ? `The first ${found.files.length} of ${found.num_found.toLocaleString("en")} files: narrow it by state, place or name.` : found.counts.length ? `${found.total.toLocaleString("en")} in all: ${counts(found.counts)}.` : "There are no files here.";
    const focused = document.activeElement?.ariaLabel;
    panel.querySelector(".found").replaceChildren(choices, quiet(said), made("ul", { className: "rows" }, ...found.files.map(fileRow)));
    if (focused && !panel.contains(document.activeElement)) [...panel.querySelectorAll("select")].find((each) => each.ariaLabel === focused)?.focus();
  };
  const parts = () => {
    const name = made("input", { type: "search", placeholder: "Part of a name or folder", ariaLabel: "Part of a name or folder" });
    let typing = 0;
    name.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => {
        wanted = { ...wanted, name: name.value.trim() };
        draw();
      }, TYPING_MS);
    });
    const form = made("form", { className: "asking" }, name);
    form.addEventListener("submit", (event) => event.preventDefault());
    return [form, made("div", { className: "found" })];
  };

  // Who comes from a place or a collection sees what is in it, and else what was wanted last.
  const show = (narrowed) => {
    if (narrowed) wanted = { ...ALL, ...narrowed };
    find("#documents_files input").value = wanted.name;
    return draw();
  };
  documents.add({ name: "files", title: "Files", parts, show, draw });
})();
