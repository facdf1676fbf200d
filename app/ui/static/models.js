// The sheet of the models: what is here and how it would do, what can come, and who was asked.
(() => {
  "use strict";
  const { find, made, button, busy, quiet, picker, asker, rowOnItsWay, sheetOf, modelDrop } = inglenook;
  const ROOM = "/_app/models";
  const LOOK_MS = 1000;
  const CONTEXTS = [2048, 4096, 8192, 16384, 32768, 65536, 131072];

  const sheet = sheetOf({
    id: "models",
    name: "Models",
    tabs: [
      { name: "here", title: "On this computer", show: () => refresh().then(follow), take: (files) => drop.take(files) },
      { name: "more", title: "To download", show: () => showMore() },
      { name: "connections", title: "Connections", show: () => showConnections() },
    ],
  });
  const { say, show } = sheet;
  const ask = asker(ROOM, say);
  const arrived = (state, sentence) => {
    // Who looks at another list meanwhile finds it later.
    if (sheet.current() === "here") showHere(state);
    say(sentence, false);
  };
  // It stays the same one while the list around it is drawn anew.
  const drop = modelDrop({ ask, say, arrived });
  let looking = 0;

  const facts = (list) => made("p", { className: "facts" }, ...list.map((each) => made("span", { textContent: each })));
  const verdict = (each) => {
    if (!each.verdict) return "";
    const more = [each.why, each.speed].filter(Boolean).join("; ");
    return made("p", { className: "verdict" }, made("b", { className: each.level, textContent: each.verdict }), more && made("span", { textContent: more }));
  };

  // ---- on this computer
  const showHere = (state) => {
    if (!state) return;
    const path = made("input", { type: "text", id: "model_path", placeholder: "/path/to/model.gguf", ariaLabel: "Path of a GGUF file or its folder" });
    const form = made("form", { className: "asking" }, path, made("button", { type: "submit", textContent: "Add by its path" }));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      const next = await ask("/add", { path: path.value });
      if (next) showHere(next);
    });
    const parts = [quiet(state.room), progress(state.downloads)];
    if (!state.is_measured) {
      const measure = button("Measure this computer once", "Measure this computer once, for predictions of speed", async (pressed) => {
        const done = busy(pressed, "Measuring…");
        const next = await ask("/measure", {});
        done();
        if (next) showHere(next);
      });
      parts.push(made("p", { className: "quiet" }, "How fast a model would be is told after ", measure));
    }
    const list = made("ul", { className: "models" }, ...state.models.map(modelRow));
    find("#models_here").replaceChildren(...parts, list, drop.element, form, quiet("The file stays where it is. Models of LM Studio, Ollama, Jan, GPT4All, llama.cpp and Hugging Face are found by themselves."));
  };
  const refresh = async () => showHere(await ask(""));
  const modelRow = (model) => {
    const row = made("li", { className: model.is_chosen ? "chosen" : "" });
    const actions = made("div", { className: "actions" });
    if (model.is_chosen) actions.append(made("span", { className: "quiet", textContent: "in use" }));
    else if (!model.problem && !model.is_adapter) {
      actions.append(
        button("Use", `Use ${model.name}`, async (pressed) => {
          say("");
          const done = busy(pressed, "Loading…");
          const used = await ask("/use", { name: model.name });
          done();
          // Who answers stands in many places of the page.
          if (used) location.reload();
        }),
      );
    }
    if (model.can_be_removed) actions.append(button("Remove…", `Remove ${model.name}`, () => askRemoval(model, row)));
    const body = made("div", { className: "body" }, made("p", { className: "name", textContent: model.name }), facts(model.facts));
    if (model.note) body.append(quiet(model.note));
    body.append(model.problem ? made("p", { className: "wrong", textContent: model.problem }) : verdict(model));
    if (model.instead) body.append(quiet(model.instead));
    body.append(details(model));
    row.append(body, actions);
    return row;
  };
  const askRemoval = async (model, row) => {
    say("");
    const asked = await ask("/remove", { name: model.path });
    if (!asked) return;
    row.querySelector(".question")?.remove();
    const question = made("p", { className: "question" }, asked.question);
    question.setAttribute("role", "alert");
    const yes = button("Yes, remove", `Yes, remove ${model.name}`, async () => {
      const next = await ask("/remove", { name: model.path, path: asked.path, is_sure: true });
      if (next) showHere(next);
    });
    question.append(yes, button("No", "Do not remove it", () => question.remove()));
    row.append(question);
    yes.focus();
  };
  const choice = (label, options, value) => {
    const select = picker(options, value);
    return [made("label", {}, label, select), select];
  };
  const details = (model) => {
    const list = made("dl", {});
    const all = [["File", model.path], ...model.details];
    if (model.explained) all.push(["Its form", model.explained]);
    for (const [name, value] of all) list.append(made("dt", { textContent: name }), made("dd", { textContent: value }));
    const part = made("details", {}, made("summary", { textContent: "Details" }), list);
    if (model.problem || model.is_adapter) return part;
    const asForAll = ["as for all", ""];
    const [contextLabel, context] = choice("Context", [asForAll, ...CONTEXTS.map((each) => [`${each.toLocaleString("en")} tokens`, each])], model.own.context_tokens);
    const [kvLabel, kv] = choice("Kept as", [asForAll, ["automatic", "auto"], ["f16", "f16"], ["q8_0", "q8_0"]], model.own.kv_type);
    const [threadsLabel, threads] = choice("Threads", [asForAll, ...Array.from({ length: navigator.hardwareConcurrency || 4 }, (_, at) => [String(at + 1), at + 1])], model.own.threads);
    const keep = async () => {
      say("");
      const next = await ask("/own", { name: model.name, context_tokens: Number(context.value) || null, kv_type: kv.value, threads: Number(threads.value) || null });
      if (!next) return;
      showHere(next);
      const again = [...document.querySelectorAll("#models_here li")].find((row) => row.querySelector(".name").textContent === model.name);
      again?.querySelector("details")?.setAttribute("open", "");
    };
    for (const select of [context, kv, threads]) select.addEventListener("change", keep);
    part.append(made("div", { className: "own" }, contextLabel, kvLabel, threadsLabel, made("span", { className: "quiet", textContent: "for this model alone, from its next loading on" })));
    if (model.beyond) part.append(quiet(model.beyond));
    if (model.adapters.length) part.append(adapters(model));
    return part;
  };

  const adapters = (model) => {
    const choices = model.adapters.map((each) => {
      const box = made("input", { type: "checkbox", checked: each.is_used });
      const scale = made("input", { type: "number", min: each.least, max: each.most, step: 0.1, value: each.scale, ariaLabel: `Scale of ${each.name}` });
      const element = made("div", { className: "adapter" }, made("label", {}, box, each.name), made("label", {}, "Scale", scale), made("span", { className: "quiet", textContent: each.size }));
      return { path: each.path, box, scale, element };
    });
    const load = button("Load with these", `Load ${model.name} with these adapters`, async (pressed) => {
      say("");
      const given = choices.filter(({ box }) => box.checked).map(({ path, scale }) => ({ path, scale: scale.value.trim() ? Number(scale.value) : null }));
      const done = busy(pressed, "Loading…");
      const used = await ask("/adapters", { adapters: given });
      done();
      // Who answers stands in many places of the page.
      if (used) location.reload();
    });
    return made("fieldset", { className: "adapters" }, made("legend", { textContent: "Adapters" }), ...choices.map(({ element }) => element), load);
  };

  // ---- on their way
  const progress = (list) => made("div", { id: "models_progress" }, ...list.map(downloadRow));
  const downloadRow = (download) => {
    const act = (name) => async () => {
      say("");
      showProgress(await ask(`/${name}`, { name: download.name }));
    };
    const buttons = download.is_running
      ? [button("Pause", `Pause ${download.name}`, act("pause"))]
      : [button("Go on", `Go on with ${download.name}`, act("resume"))];
    buttons.push(button("Give up", `Give up ${download.name} and delete what has come`, act("cancel")));
    const row = rowOnItsWay(download.name, buttons, download.message);
    row.show(download.share, download.words);
    return row.element;
  };
  const showProgress = (list) => {
    if (!list) return;
    for (const part of document.querySelectorAll("#models_progress")) part.replaceChildren(...list.map(downloadRow));
    clearTimeout(looking);
    if (list.some((each) => each.is_running)) looking = setTimeout(follow, LOOK_MS);
  };
  const follow = async () => {
    if (!sheet.isOpen()) return;
    const before = document.querySelectorAll("#models_progress .download").length;
    const list = await ask("/downloads");
    if (!list) return;
    // The focus stays on a button that is drawn anew.
    const label = document.activeElement?.ariaLabel;
    showProgress(list);
    if (label) [...document.querySelectorAll("#models_progress button")].find((each) => each.ariaLabel === label)?.focus();
    if (list.length < before) refresh();
  };

  // ---- what can come
  const sizePicker = (sizes, usual) => {
    const select = picker(sizes.map((each) => [`${each.quantization}, ${each.size}`, each.quantization]), usual ?? sizes[0].quantization, { ariaLabel: "Size" });
    const shown = made("div", { className: "size" });
    const show = () => {
      const each = sizes.find(({ quantization }) => quantization === select.value);
      shown.replaceChildren(verdict(each), quiet([each.instead, each.explained].filter(Boolean).join(" ")));
    };
    if (!select.value) select.value = sizes[0].quantization;
    select.addEventListener("change", show);
    show();
    return [select, shown];
  };
  const downloadButton = (name, select) =>
    button("Download", `Download ${name}`, async (pressed) => {
      say("");
      const done = busy(pressed, "Asking…");
      const list = await ask("/download", { name, quantization: select.value });
      done();
      if (!list) return;
      show("here");
    });
  const catalogRow = (model) => {
    const [select, shown] = sizePicker(model.sizes, model.usual);
    return made("li", {}, made("div", { className: "body" }, made("p", { className: "name", textContent: model.title }), made("p", { textContent: model.purpose }), facts(model.facts), shown), made("div", { className: "actions" }, select, downloadButton(model.name, select)));
  };
  const foundRow = (repo) => {
    const actions = made("div", { className: "actions" });
    const body = made("div", { className: "body" }, made("p", { className: "name", textContent: repo.name }), facts(repo.facts));
    actions.append(
      button("Sizes…", `Sizes of ${repo.name}`, async (pressed) => {
        say("");
        const done = busy(pressed, "Asking…");
        const offers = await ask("/offers", { name: repo.name });
        done();
        if (!offers) return;
        const usual = offers.find(({ quantization }) => quantization === "Q4_K_M");
        const [select, shown] = sizePicker(offers, usual?.quantization);
        body.append(shown);
        actions.replaceChildren(select, downloadButton(repo.name, select));
        select.focus();
      }),
    );
    return made("li", {}, body, actions);
  };
  const showMore = async () => {
    const text = made("input", { type: "search", id: "model_search", placeholder: "A name at Hugging Face", ariaLabel: "A name at Hugging Face" });
    const found = made("ul", { className: "models", id: "models_found" });
    const go = made("button", { type: "submit", textContent: "Search Hugging Face" });
    const form = made("form", { className: "asking" }, text, go);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("");
      const done = busy(go, "Asking…");
      const rows = await ask("/search", { text: text.value });
      done();
      if (!rows) return;
      found.replaceChildren(...rows.map(foundRow));
      if (!rows.length) say("Nothing with GGUF files has this name: try a shorter one.", false);
    });
    const list = await ask("/available");
    if (!list) return;
    const hint = "Only what you search for or download is asked for at huggingface.co, and each connection is listed under Connections.";
    find("#models_more").replaceChildren(form, quiet(hint), found, made("h3", { textContent: "Good for their size, and free for any use" }), made("ul", { className: "models" }, ...list.map(catalogRow)));
  };

  // ---- who was asked
  const showConnections = async () => {
    const list = await ask("/connections");
    if (!list) return;
    const room = find("#models_connections");
    if (!list.length) {
      room.replaceChildren(quiet("No connection to another machine was ever opened."));
      return;
    }
    const rows = list.map((each) => made("tr", {}, ...[each.at, each.host, each.why].map((text) => made("td", { textContent: text }))));
    const head = made("tr", {}, ...["When", "To", "Why"].map((text) => made("th", { textContent: text, scope: "col" })));
    room.replaceChildren(made("table", {}, made("thead", {}, head), made("tbody", {}, ...rows)));
  };

  addEventListener("click", (event) => {
    if (event.target.closest?.("#open_models")) sheet.open();
  });
})();
