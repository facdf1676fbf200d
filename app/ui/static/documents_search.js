// The search in the documents: the places where the words stand, best first.
(() => {
  "use strict";
  const { find, made, button, busy, quiet, documents, documentRows } = inglenook;
  const { state, say, ask, look } = documents;
  const { collectionChoice } = documentRows;

  const snippet = (hit) => {
    const line = made("p", { className: "snippet", dir: "auto" });
    let at = 0;
    // Counted in characters, as the app does, and not in the browser's units.
    const letters = [...hit.snippet];
    for (const [start, end] of hit.marks) {
      line.append(letters.slice(at, start).join(""), made("mark", { textContent: letters.slice(start, end).join("") }));
      at = end;
    }
    line.append(letters.slice(at).join(""));
    return line;
  };
  const hitRow = (hit) => {
    const open = button("", `Open ${hit.name}, ${hit.where}`, (pressed) => look({ document: hit.document, number: hit.page, stretch: hit.stretch }, pressed));
    open.className = "hit";
    open.append(made("bdi", { textContent: hit.name }), `, ${hit.where}`);
    const also = hit.paths.length > 1 ? quiet(`The same file lies in ${hit.paths.length} places: ${hit.paths.join(", ")}`) : "";
    return made("li", {}, made("div", { className: "body" }, open, hit.heading && quiet(hit.heading), snippet(hit), also));
  };
  const within = () => find("#documents_find select")?.value ?? "";
  const parts = () => {
    const text = made("input", { type: "search", id: "document_search", placeholder: "Words, or a question", ariaLabel: "Search in your files" });
    const go = made("button", { type: "submit", textContent: "Search" });
    const form = made("form", { className: "asking" }, text, made("span", { className: "within" }), go);
    const found = made("div", { className: "found" });
    found.setAttribute("role", "status");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      const done = busy(go, "Searching…");
      const answer = await ask("/search", { text: text.value, collection: within() });
      done();
      if (!answer) return;
      const words = !answer.hits.length ? "Nothing was found." : answer.is_enough ? "" : "None of these has much of what was asked for.";
      found.replaceChildren(...[words && quiet(words), made("ul", { className: "rows hits" }, ...answer.hits.map(hitRow))].filter(Boolean));
    });
    return [form, quiet("Your files are searched for these words on this computer; no model is asked."), found];
  };
  const show = () => {
    const before = within();
    const isThere = state().collections.some(({ name }) => name === before);
    find("#documents_find .within").replaceChildren(collectionChoice(isThere ? before : "", () => {}));
    find("#document_search").focus();
  };

  documents.add({ name: "find", title: "Search", parts, show });
})();
