// What the panels of the documents show alike: a file's name, what is asked before it is done, and
// the collections that something is in.
(() => {
  "use strict";
  const { made, button, picker, documents } = inglenook;
  const { state, say, ask, take } = documents;
  const NEW = "\n";

  // A name of somebody else's file keeps its direction to itself.
  const nameOf = (each) => made("p", { className: "name" }, made("bdi", { textContent: each.name }));
  const whereOf = (each) => made("p", { className: "quiet" }, made("bdi", { textContent: each.where }));

  // ---- what is asked before it is done
  const question = async (row, path, action, yes) => {
    say("");
    const asked = await ask(action, { path });
    if (!asked) return;
    row.querySelector(".question")?.remove();
    const part = made("p", { className: "question" }, asked.question);
    part.setAttribute("role", "alert");
    const sure = button(yes, yes, async () => {
      const next = await ask(action, { path, is_sure: true });
      take(next);
    });
    part.append(sure, button("No", "No, leave it as it is", () => part.remove()));
    row.append(part);
    sure.focus();
  };
  const removal = (each, row) => {
    const word = each.is_received ? "Delete" : "Remove";
    return button(`${word}…`, `${word} ${each.name}`, () => question(row, each.path, "/remove", `Yes, ${word.toLowerCase()}`));
  };
  const again = (each, row) => button("Read again…", `Read ${each.name} again`, () => question(row, each.path, "/again", "Yes, read again"));
  const pictures = (each, row) => button("Read by OCR…", `Read the pages of ${each.name} that have no text by OCR`, () => question(row, each.path, "/pictures", "Yes, read them by OCR"));

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

  const documentRows = { nameOf, whereOf, removal, again, pictures, collecting, choice, collectionChoice, counts };
  window.inglenook = Object.freeze({ ...inglenook, documentRows: Object.freeze(documentRows) });
})();
