// What the panels of the documents show alike: a file's name, what is asked before it is done, and
// the collections that something is in.
(() => {
  "use strict";
  const { find, boxIn, put, made, button, picker, documents } = inglenook;
  const { state, say, ask, take } = documents;
  const NEW = "\n";

  // A name of somebody else's file keeps its direction to itself.
  const nameOf = (each) => made("p", { className: "name" }, made("bdi", { textContent: each.name }));
  const whereOf = (each) => made("p", { className: "quiet" }, made("bdi", { textContent: each.where }));

  // ---- what is asked before it is done: one question at a time, which outlives its row, since the
  // list is drawn anew when the reading of a file ends
  const rows = new Map();
  let pending = null;
  const settle = () => {
    pending?.part.remove();
    pending = null;
  };
  const question = async (path, action, yes, row = null) => {
    say("");
    const asked = await ask(action, { path });
    if (!asked) return;
    settle();
    const part = made("p", { className: "question" }, asked.question);
    part.setAttribute("role", "alert");
    const sure = button(yes, yes, async () => {
      const next = await ask(action, { path, is_sure: true });
      if (next) settle();
      take(next);
    });
    part.append(sure, button("No", "No, leave it as it is", settle));
    pending = { path, part };
    (row ?? rows.get(path))?.append(part);
    sure.focus();
  };
  const rowOf = (each, ...parts) => {
    const row = made("li", {}, ...parts);
    rows.set(each.path, row);
    if (pending?.path === each.path) row.append(pending.part);
    return row;
  };
  const removal = (each) => {
    const word = each.is_received ? "Delete" : "Remove";
    return button(`${word}…`, `${word} ${each.name}`, () => question(each.path, "/remove", `Yes, ${word.toLowerCase()}`));
  };
  const again = (each) => button("Read again…", `Read ${each.name} again`, () => question(each.path, "/again", "Yes, read again"));
  const pictures = (each) => button("Read by OCR…", `Read the pages of ${each.name} that have no text by OCR`, () => question(each.path, "/pictures", "Yes, read them by OCR"));

  // The next questions are asked of this alone.
  const asking = (each) => button("Ask", `Ask questions of ${each.name}`, () => {
    find("#documents").close();
    put(boxIn("#asks_dropped"), JSON.stringify({ only: [each.path] }));
    dispatchEvent(new Event("inglenook:chat"));
  });

  // ---- collections of a place or a file
  const collecting = (each) => {
    const part = made("span", { className: "collecting" });
    for (const name of each.collections) {
      const out = button("×", `Take ${each.name} out of ${name}`, async () => take(await ask("/take_out", { path: each.path, name })));
      part.append(made("span", { className: "chip" }, made("bdi", { textContent: name }), out));
    }
    const others = state().collections.map(({ name }) => name).filter((name) => !each.collections.includes(name));
    const select = picker([["Put into…", ""], ...others.map((name) => [name, name]), ["a new collection…", NEW]], "", { ariaLabel: `Put ${each.name} into a collection` });
    select.addEventListener("change", async () => {
      say("");
      if (select.value !== NEW) return take(await ask("/collect", { path: each.path, name: select.value }));
      const name = made("input", { type: "text", maxLength: 60, placeholder: "Name", ariaLabel: "Name of the new collection" });
      const form = made("form", { className: "naming" }, name, made("button", { type: "submit", textContent: "Make" }));
      form.addEventListener("submit", async (event) => {
        event.preventDefault();
        take(await ask("/collect", { path: each.path, name: name.value }));
      });
      select.replaceWith(form);
      name.focus();
    });
    part.append(select);
    return part;
  };

  const choice = (ariaLabel, options, value, act) => {
    const select = picker(options, value, { ariaLabel });
    select.addEventListener("change", () => act(select.value));
    return select;
  };
  const collectionChoice = (value, act) => choice("Collection", [["in the whole library", ""], ...state().collections.map(({ name }) => [`in ${name}`, name])], value, act);
  const counts = (list) => list.map(({ words, num }) => `${num.toLocaleString("en")} ${words}`).join(", ");

  const documentRows = { nameOf, whereOf, rowOf, question, removal, again, pictures, asking, collecting, choice, collectionChoice, counts };
  window.inglenook = Object.freeze({ ...inglenook, documentRows: Object.freeze(documentRows) });
})();
