// How sure the model was: a sheet with an answer token by token, and what else could have come.
(() => {
  "use strict";
  const { find, boxIn, made, button, quiet, put, onLink, dialogOf } = inglenook;
  const SURE = "#sure-";
  // From the likeliest down: the first that a probability reaches.
  const LEVELS = [
    { least: 0.9, name: "sure", words: "90 % or more" },
    { least: 0.5, name: "likely", words: "50 to 90 %" },
    { least: 0.2, name: "possible", words: "20 to 50 %" },
    { least: 0.05, name: "unlikely", words: "5 to 20 %" },
    { least: 0, name: "rare", words: "below 5 %" },
  ];
  const levelOf = (p) => LEVELS.find((level) => p >= level.least).name;
  const percent = (p) => (p >= 0.9995 ? "100 %" : p < 0.0005 ? "< 0.1 %" : `${(100 * p).toFixed(1)} %`);
  const seen = (text) => text.replaceAll("\n", "⏎").replaceAll(" ", "␣").replaceAll("\t", "⇥");

  // A line break alone would leave nothing to point at.
  const shown = (text) => text.replaceAll("\n", "⏎\n") || "◌";

  let answerId = "";
  let found = null;
  let current = 0;

  const ask = (place, token) => {
    const box = boxIn("#continue_asked");
    sheet().close();
    // The moment makes it another wish, also when the same one was there before.
    put(box, JSON.stringify({ answer: answerId, place, token, at: Date.now() }));
  };

  // ---- what else could have come
  const choiceOf = (each) => {
    const text = made("code", { textContent: each.is_text ? each.text : "the end, or another mark" });
    const bar = made("i", {});
    bar.style.width = `${100 * each.p}%`;
    const row = made("li", { className: each.is_chosen ? "chosen" : "" }, made("span", { className: "bar" }, bar), text, made("span", { className: "figure", textContent: percent(each.p) }));
    if (each.is_chosen) row.append(made("span", { className: "quiet", textContent: "came" }));
    else if (each.is_text && !found.obstacle) {
      row.append(button("Continue from this one", `Continue from ${each.text}, ${percent(each.p)}`, () => ask(current, each.id)));
    }
    return row;
  };
  const showChoices = (place) => {
    const token = found.tokens[place];
    const list = made("ul", {}, ...token.alternatives.map(choiceOf));
    const title = made("p", { className: "title" }, "At ", made("code", { textContent: seen(token.text) || "…" }), ` the model could choose:`);
    const parts = [title, list];
    if (found.obstacle) parts.push(quiet(found.obstacle));
    find("#sure_choices").replaceChildren(...parts);
  };

  // ---- the tokens: one stop for Tab, arrows from one to the next
  const tokens = () => document.querySelectorAll("#sure_text .token");
  const choose = (place, isOpened) => {
    const all = tokens();
    const next = Math.max(0, Math.min(place, all.length - 1));
    all[current].tabIndex = -1;
    all[current].ariaPressed = "false";
    current = next;
    all[next].tabIndex = 0;
    all[next].focus({ preventScroll: false });
    if (!isOpened) return;
    all[next].ariaPressed = "true";
    showChoices(next);
  };
  const tokenOf = (token, place) => {
    const label = `${token.text.trim() || seen(token.text) || "part of a character"}, ${percent(token.p)}`;
    const part = made("span", { className: `token ${levelOf(token.p)}`, tabIndex: place ? -1 : 0, textContent: shown(token.text), title: percent(token.p), ariaLabel: label, ariaPressed: "false" });
    part.setAttribute("role", "button");
    part.dataset.place = place;
    return part;
  };
  const onTextKey = (event) => {
    const place = Number(event.target.dataset?.place);
    const to = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: Infinity }[event.key];
    if (Number.isNaN(place)) return;
    if (to !== undefined) choose(to, false);
    else if (event.key === "Enter" || event.key === " ") choose(place, true);
    else return;
    event.preventDefault();
  };

  const legend = () =>
    made("p", { className: "legend", ariaHidden: "true" }, ...LEVELS.map(({ name, words }) => made("span", { className: `token ${name}`, textContent: words })));
  const sheet = () => {
    const known = find("#sure");
    if (known) return known;
    const text = made("div", { id: "sure_text", ariaLabel: "The answer, token by token; arrows move, Enter shows what else could have come" });
    text.setAttribute("role", "group");
    text.addEventListener("keydown", onTextKey);
    text.addEventListener("click", (event) => {
      const token = event.target.closest(".token");
      if (token) choose(Number(token.dataset.place), true);
    });
    const choices = made("div", { id: "sure_choices" });
    choices.setAttribute("role", "status");
    return dialogOf({ id: "sure", name: "How sure the model was" }, legend(), text, choices);
  };
  const open = async (id) => {
    const reply = await fetch(`/_app/likelihoods/${encodeURIComponent(id)}`);
    const dialog = sheet();
    const hint = made("p", { className: "quiet" });
    find("#sure_choices").replaceChildren(hint);
    if (!reply.ok) {
      find("#sure_text").replaceChildren();
      hint.textContent = await reply.text();
    } else {
      [answerId, found, current] = [id, await reply.json(), 0];
      find("#sure_text").replaceChildren(...found.tokens.map(tokenOf));
      hint.textContent = "Choose a token to see what else could have come.";
    }
    dialog.showModal();
    (find("#sure_text .token") ?? find("#sure_close")).focus();
  };
  onLink(`#chat a[href^="${SURE}"]`, (link) => open(link.hash.slice(SURE.length)));
})();
