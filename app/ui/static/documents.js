// The sheet of the user's own files: where they lie, what was read of each, what is found in them.
(() => {
  "use strict";
  const { find, made, button, busy, quiet, picker, asker } = inglenook;
  const ROOM = "/_app/documents";
  const LOOK_MS = 1000;
  const TYPING_MS = 250;
  const TABS = [
    ["places", "Places"],
    ["files", "Files"],
    ["find", "Search"],
    ["collections", "Collections"],
  ];
  const NEW = "\n";

  let current = "places";
  let state = { places: [], collections: [], received: "", progress: { is_reading: false } };
  let wanted = { place: "", collection: "", state: "", name: "" };
  let looking = 0;
  // What was said when the progress could not be asked for.
  let lost = "";

  // ---- asking the app: what it refuses is a sentence, said at the top of the sheet
  const say = (sentence, isWrong = true) => {
    const note = find("#documents_said");
    if (!note) return;
    // Said again it would be read out again.
    if (note.textContent !== sentence) note.textContent = sentence;
    note.className = isWrong ? "wrong" : "";
    note.hidden = !sentence;
  };
  const ask = asker(ROOM, say);
  // A name of somebody else's file keeps its direction to itself.
  const nameOf = (each) => made("p", { className: "name" }, made("bdi", { textContent: each.name }));
  const whereOf = (each) => made("p", { className: "quiet" }, made("bdi", { textContent: each.where }));

  // ---- what is asked before it is done
  const question = async (row, path, action, yes, done) => {
    say("");
    const asked = await ask(action, { path });
    if (!asked) return;
    row.querySelector(".question")?.remove();
    const part = made("p", { className: "question" }, asked.question);
    part.setAttribute("role", "alert");
    const sure = button(yes, yes, async () => {
      const next = await ask(action, { path, is_sure: true });
      if (next) done(next);
    });
    part.append(sure, button("No", "No, leave it as it is", () => part.remove()));
    row.append(part);
    sure.focus();
  };
  const removal = (each, row) => {
    const word = each.is_received ? "Delete" : "Remove";
    return button(`${word}…`, `${word} ${each.name}`, () => question(row, each.path, "/remove", `Yes, ${word.toLowerCase()}`, take));
  };
  const again = (each, row) => button("Read again…", `Read ${each.name} again`, () => question(row, each.path, "/again", "Yes, read again", take));

  // ---- collections of a place or a file
  const collecting = (each) => {
    const part = made("span", { className: "collecting" });
    for (const name of each.collections) {
      const out = button("×", `Take ${each.name} out of ${name}`, async () => take(await ask("/take_out", { path: each.path, name })));
      part.append(made("span", { className: "chip" }, made("bdi", { textContent: name }), out));
    }
    const others = state.collections.map(({ name }) => name).filter((name) => !each.collections.includes(name));
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

  // ---- places
  const counts = (list) => list.map(({ words, num }) => `${num.toLocaleString("en")} ${words}`).join(", ");
  const placeRow = (place) => {
    const row = made("li");
    const files = button("Files", `Files of ${place.name}`, () => {
      wanted = { place: place.path, collection: "", state: "", name: "" };
      show("files");
    });
    const held = place.counts.length ? `${place.total}: ${counts(place.counts)}` : place.total;
    const body = made("div", { className: "body" }, nameOf(place), whereOf(place), made("p", { textContent: held }), !place.is_there && made("p", { className: "wrong", textContent: "It is not there now. What was read of it is kept, and can be found." }), collecting(place));
    row.append(body, made("div", { className: "actions" }, files, again(place, row), removal(place, row)));
    return row;
  };
  const showPlaces = () => {
    const list = find("#documents_list");
    list.replaceChildren(...state.places.map(placeRow));
    if (!state.places.length) list.append(made("li", { className: "quiet", textContent: "Nothing is here yet. Add a folder or a file: it is read on this computer, and can then be searched." }));
  };
  const placesPanel = () => {
    const path = made("input", { type: "text", id: "document_path", placeholder: "/path/to/folder or file", ariaLabel: "Path of a folder or a file" });
    const add = made("button", { type: "submit", textContent: "Add by its path" });
    const form = made("form", { className: "asking" }, path, add);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      const done = busy(add, "Looking…");
      const next = await ask("/add", { path: path.value });
      done();
      if (!next) return;
      path.value = "";
      take(next);
    });
    return [form, quiet("The files stay where they are. A folder is read with all folders in it, and what changes there is noticed."), dropPlace, made("ul", { className: "rows", id: "documents_list" })];
  };

  // ---- files that are dropped: a browser tells no path, so they are copied
  const coming = made("div", { id: "documents_coming" });
  const dropped = async (file, collection = "") => {
    if (!(await ask("/announce", { name: file.name, num_bytes: file.size }))) return null;
    const row = quiet(`Copying ${file.name}…`);
    coming.append(row);
    try {
      const reply = await fetch(`${ROOM}/drop?name=${encodeURIComponent(file.name)}&collection=${encodeURIComponent(collection)}`, { method: "POST", body: file });
      const answer = await reply.json();
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
    for (const file of files) take(await dropped(file));
  };
  const zone = () => {
    const input = made("input", { type: "file", multiple: true, hidden: true, id: "document_file" });
    input.addEventListener("change", () => {
      takeFiles([...input.files]);
      // So that the same file can be chosen again.
      input.value = "";
    });
    const choose = button("Choose files…", "Choose files to copy", () => input.click());
    return made("div", { id: "documents_drop" }, coming, made("div", { className: "zone" }, made("span", { textContent: "Drop files here, or " }), choose, input, quiet("A browser tells no path, so a dropped file is copied into Inglenook's own folder of received documents: a later change of yours is not seen there.")));
  };
  const dropPlace = zone();
  const listenForDrops = (dialog) => {
    const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    const mark = (isOver) => dialog.classList.toggle("over", isOver);
    dialog.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      mark(true);
    });
    dialog.addEventListener("dragleave", (event) => {
      if (!dialog.contains(event.relatedTarget)) mark(false);
    });
    dialog.addEventListener("drop", async (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      event.stopPropagation();
      mark(false);
      // Taken first: they are gone after the event.
      const files = [...event.dataTransfer.files];
      await show("places");
      takeFiles(files);
    });
  };

  // ---- files
  const choice = (label, options, value, act) => {
    const select = picker(options, value, { ariaLabel: label });
    select.addEventListener("change", () => act(select.value));
    return select;
  };
  const collectionChoice = (value, act) => choice("Collection", [["in the whole library", ""], ...state.collections.map(({ name }) => [`in ${name}`, name])], value, act);
  const unlocking = (file) => {
    const password = made("input", { type: "password", autocomplete: "off", placeholder: "Password", ariaLabel: `Password of ${file.name}` });
    const form = made("form", { className: "naming" }, password, made("button", { type: "submit", textContent: "Open with it" }), quiet("It is not kept."));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      const next = await ask("/unlock", { path: file.path, password: password.value });
      if (next) showProgress(next);
      showFiles();
    });
    return form;
  };
  const fileRow = (file) => {
    const row = made("li");
    const isOurs = file.is_received;
    const open = file.document && button("Open", `Open ${file.name}`, (pressed) => look({ document: file.document, number: 1 }, pressed));
    const facts = made("p", { className: "facts" }, made("span", { className: file.is_sound ? "" : "state", textContent: file.words }), file.pages && made("span", { textContent: file.pages }));
    const body = made("div", { className: "body" }, nameOf(file), whereOf(file), facts, file.message && made("p", { className: file.is_sound ? "quiet" : "wrong", textContent: file.message }), file.needs_password && unlocking(file), collecting(file));
    row.append(body, made("div", { className: "actions" }, open, again(file, row), isOurs && removal(file, row)));
    return row;
  };
  let asking = 0;
  const showFiles = async () => {
    const turn = ++asking;
    const found = await ask("/files", wanted);
    // What was typed meanwhile asks for other files.
    if (!found || turn !== asking || current !== "files") return;
    const panel = find("#documents_files");
    const states = [[`all states (${found.total.toLocaleString("en")})`, ""], ...found.counts.map((each) => [`${each.words} (${each.num.toLocaleString("en")})`, each.state])];
    if (wanted.state && !states.some(([, each]) => each === wanted.state)) states.push(["none of these", wanted.state]);
    const narrow = (more) => {
      wanted = { ...wanted, ...more };
      showFiles();
    };
    const choices = made("div", { className: "choices" },
      choice("State", states, wanted.state, (value) => narrow({ state: value })),
      choice("Place", [["in all places", ""], ...state.places.map((place) => [`in ${place.name}`, place.path])], wanted.place, (value) => narrow({ place: value })),
      collectionChoice(wanted.collection, (value) => narrow({ collection: value })));
    const said = found.num_found > found.files.length ? `The first ${found.files.length} of ${found.num_found.toLocaleString("en")} files: narrow it by state, place or name.` : found.counts.length ? `${found.total.toLocaleString("en")} in all: ${counts(found.counts)}.` : "There are no files here.";
    const focused = document.activeElement?.ariaLabel;
    panel.querySelector(".found").replaceChildren(choices, quiet(said), made("ul", { className: "rows" }, ...found.files.map(fileRow)));
    if (focused && !panel.contains(document.activeElement)) [...panel.querySelectorAll("select")].find((each) => each.ariaLabel === focused)?.focus();
  };
  const filesPanel = () => {
    const name = made("input", { type: "search", placeholder: "Part of a name or folder", ariaLabel: "Part of a name or folder" });
    let typing = 0;
    name.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => {
        wanted = { ...wanted, name: name.value.trim() };
        showFiles();
      }, TYPING_MS);
    });
    const form = made("form", { className: "asking" }, name);
    form.addEventListener("submit", (event) => event.preventDefault());
    return [form, made("div", { className: "found" })];
  };

  // ---- search
  let within = "";
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
  const findPanel = () => {
    const text = made("input", { type: "search", id: "document_search", placeholder: "Words, or a question", ariaLabel: "Search in your files" });
    const go = made("button", { type: "submit", textContent: "Search" });
    const form = made("form", { className: "asking" }, text, made("span", { className: "within" }), go);
    const found = made("div", { className: "found" });
    found.setAttribute("role", "status");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      const done = busy(go, "Searching…");
      const answer = await ask("/search", { text: text.value, collection: within });
      done();
      if (!answer) return;
      const words = !answer.hits.length ? "Nothing was found." : answer.is_enough ? "" : "None of these has much of what was asked for.";
      found.replaceChildren(...[words && quiet(words), made("ul", { className: "rows hits" }, ...answer.hits.map(hitRow))].filter(Boolean));
    });
    return [form, quiet("Your files are searched for these words on this computer; no model is asked."), found];
  };
  const showFind = () => {
    if (!state.collections.some(({ name }) => name === within)) within = "";
    find("#documents_find .within").replaceChildren(collectionChoice(within, (value) => {
      within = value;
    }));
    find("#document_search").focus();
  };

  // ---- collections
  const collectionRow = ({ name, places }) => {
    const inside = places.map((place) => made("li", {}, made("bdi", { textContent: place.name, title: place.where }), button("Take out", `Take ${place.name} out of ${name}`, async () => take(await ask("/take_out", { path: place.path, name })))));
    const files = button("Files", `Files of the collection ${name}`, () => {
      wanted = { place: "", collection: name, state: "", name: "" };
      show("files");
    });
    return made("li", {}, made("div", { className: "body" }, nameOf({ name }), made("ul", { className: "inside" }, ...inside)), made("div", { className: "actions" }, files));
  };
  const showCollections = () => {
    const panel = find("#documents_collections");
    const hint = quiet("A collection is a name for some of your places and files, so that a question is asked of these alone. One that is empty is gone.");
    const list = made("ul", { className: "rows" }, ...state.collections.map(collectionRow));
    if (!state.places.length) return panel.replaceChildren(hint, list);
    const name = made("input", { type: "text", maxLength: 60, placeholder: "Name", ariaLabel: "Name of the new collection" });
    const place = choice("Its first place", state.places.map((each) => [each.name, each.path]), state.places[0].path, () => {});
    const form = made("form", { className: "asking" }, name, place, made("button", { type: "submit", textContent: "Make a collection" }));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      take(await ask("/collect", { path: place.value, name: name.value }));
    });
    panel.replaceChildren(hint, form, list);
  };

  // ---- what is being read: asked for while there is something, and else not at all
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
    if (!progress.is_paused) looking = setTimeout(follow, LOOK_MS);
  };
  const follow = async () => {
    if (!find("#documents")?.open) return;
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
    showProgress(progress);
  };
  const progressPart = () => {
    const bar = made("progress", { max: 1, ariaLabel: "Progress of the file that is being read" });
    const hold = button("Pause", "Pause reading", async () => {
      const next = await ask(state.progress.is_paused ? "/go_on" : "/pause", {});
      if (next) showProgress(next);
    });
    const part = made("div", { id: "documents_progress", hidden: true }, made("p"), bar, hold);
    return part;
  };

  // ---- the sheet
  const SHOWN = { places: showPlaces, files: showFiles, find: showFind, collections: showCollections };
  // The list as it is now; what is shown of it is drawn anew.
  const take = (next) => {
    if (!next) return;
    const { progress, added, ...rest } = next;
    state = { ...state, ...rest };
    if (current !== "find") SHOWN[current]();
    showProgress(progress);
  };
  const refresh = async () => take(await ask(""));
  const show = async (name) => {
    current = name;
    for (const [each] of TABS) {
      const isShown = each === name;
      const tab = find(`#documents_tab_${each}`);
      tab.ariaSelected = String(isShown);
      tab.tabIndex = isShown ? 0 : -1;
      find(`#documents_${each}`).hidden = !isShown;
    }
    const search = find("#documents_files input");
    if (name === "files") search.value = wanted.name;
    await SHOWN[name]();
  };
  const look = (page, opener) => dispatchEvent(new CustomEvent("inglenook:passage", { detail: { ...page, opener } }));
  const tabOf = ([name, title]) => {
    const tab = made("button", { type: "button", id: `documents_tab_${name}`, textContent: title });
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", `documents_${name}`);
    tab.addEventListener("click", () => {
      say("");
      show(name);
    });
    return tab;
  };
  const CONTENTS = { places: placesPanel, files: filesPanel, find: findPanel, collections: () => [] };
  const panelOf = ([name]) => {
    const panel = made("div", { id: `documents_${name}`, hidden: true }, ...CONTENTS[name]());
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", `documents_tab_${name}`);
    return panel;
  };
  const onTabKey = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = TABS.findIndex(([name]) => name === current) + step;
    const [name] = TABS[(at + TABS.length) % TABS.length];
    show(name);
    find(`#documents_tab_${name}`).focus();
  };
  const sheet = () => {
    const known = find("#documents");
    if (known) return known;
    const close = made("button", { type: "button", id: "documents_close", textContent: "Close" });
    const tabs = made("div", { className: "tabs" }, ...TABS.map(tabOf));
    tabs.setAttribute("role", "tablist");
    tabs.addEventListener("keydown", onTabKey);
    const said = made("p", { id: "documents_said", hidden: true });
    said.setAttribute("role", "alert");
    const dialog = made("dialog", { id: "documents", ariaLabel: "Documents" }, made("div", { className: "head" }, made("h2", { textContent: "Documents" }), close), tabs, said, progressPart(), ...TABS.map(panelOf));
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    // The page's own keys, such as the one that stops an answer, are not meant here.
    dialog.addEventListener("keydown", (event) => event.stopPropagation());
    dialog.addEventListener("close", () => clearTimeout(looking));
    listenForDrops(dialog);
    document.body.append(dialog);
    return dialog;
  };
  const open = async () => {
    const dialog = sheet();
    dialog.showModal();
    say("");
    show("places");
    find("#documents_tab_places").focus();
    await refresh();
  };
  addEventListener("click", (event) => {
    if (event.target.closest?.("#open_documents")) open();
  });
  // Whoever comes back from a folder has perhaps put something there.
  addEventListener("focus", () => {
    if (find("#documents")?.open && !state.progress.is_reading && !find("#documents .question, #documents .naming")) refresh();
  });
})();
