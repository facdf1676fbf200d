// The collections of the documents: names for some of the places and files.
(() => {
  "use strict";
  const { find, made, button, quiet, documents, documentRows } = inglenook;
  const { state, say, ask, take, show } = documents;
  const { nameOf, choice } = documentRows;

  const collectionRow = ({ name, places }) => {
    const inside = places.map((place) => made("li", {}, made("bdi", { textContent: place.name, title: place.where }), button("Take out", `Take ${place.name} out of ${name}`, async () => take(await ask("/take_out", { path: place.path, name })))));
    const files = button("Files", `Files of the collection ${name}`, () => show("files", { collection: name }));
    return made("li", {}, made("div", { className: "body" }, nameOf({ name }), made("ul", { className: "inside" }, ...inside)), made("div", { className: "actions" }, files));
  };
  const draw = () => {
    const panel = find("#documents_collections");
    const hint = quiet("A collection is a name for some of your places and files, so that a question is asked of these alone. One that is empty is gone.");
    const list = made("ul", { className: "rows" }, ...state().collections.map(collectionRow));
    if (!state().places.length) return panel.replaceChildren(hint, list);
    const name = made("input", { type: "text", maxLength: 60, placeholder: "Name", ariaLabel: "Name of the new collection" });
    const place = choice("Its first place", state().places.map((each) => [each.name, each.path]), state().places[0].path, () => {});
    const form = made("form", { className: "asking" }, name, place, made("button", { type: "submit", textContent: "Make a collection" }));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      take(await ask("/collect", { path: place.value, name: name.value }));
    });
    panel.replaceChildren(hint, form, list);
  };

  documents.add({ name: "collections", title: "Collections", show: draw, draw });
})();
