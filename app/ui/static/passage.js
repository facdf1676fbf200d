// A page of one of the user's files, beside the chat: as it looks, with the words that are meant
// boxed, or its text with these words marked. Whoever wants one sends "inglenook:passage" with
// {document, number, stretch}, or {answer, quotation, citation} for what an answer stands on.
(() => {
  "use strict";
  const { find, made, button, quiet, onLink, GONE, asJson, answerOf, dialogOf } = inglenook;
  const ROOM = "/_app/documents";

  let wanted = null;
  let shown = null;
  let opener = null;
  // Of a file that needs one, as long as the panel shows it.
  let password = "";
  let isText = false;
  let picture = "";
  let turn = 0;

  const part = (name) => find(`#passage_${name}`);
  const say = (...sentences) => {
    const list = sentences.filter(Boolean);
    part("said").replaceChildren(...list.map((textContent) => made("p", { textContent })));
    part("said").hidden = !list.length;
  };
  const forget = () => {
    if (picture) URL.revokeObjectURL(picture);
    picture = "";
  };

  // ---- the text of a page
  const showText = () => {
    // Places are counted in characters, as the app does, and not in the browser's units.
    const letters = [...shown.text];
    const [before, meant, after] = [letters.slice(0, shown.start), letters.slice(shown.start, shown.end), letters.slice(shown.end)].map((each) => each.join(""));
    const mark = meant && made("mark", { textContent: meant });
    const text = made("div", { className: "text", dir: "auto" }, before, mark, after);
    part("body").replaceChildren(shown.text.trim() ? text : quiet("This page has no text."));
    part("body").scrollTop = 0;
    if (mark) mark.scrollIntoView({ block: "center" });
  };

  // ---- its picture
  const NEAR = 0.008;
  // Boxes that touch are framed as one: a passage, and not its lines.
  const framed = (places) => {
    const frames = [];
    for (const place of places) {
      let [left, top, width, height] = place;
      let [right, bottom] = [left + width, top + height];
      for (let at = frames.length - 1; at >= 0; at -= 1) {
        const [l, t, w, h] = frames[at];
        if (l > right + NEAR || l + w < left - NEAR || t > bottom + NEAR || t + h < top - NEAR) continue;
        [left, top] = [Math.min(left, l), Math.min(top, t)];
        [right, bottom] = [Math.max(right, l + w), Math.max(bottom, t + h)];
        frames.splice(at, 1);
        at = frames.length;
      }
      frames.push([left, top, right - left, bottom - top]);
    }
    return frames;
  };
  const boxAt = ([left, top, width, height]) => {
    const box = made("span", { className: "box" });
    Object.assign(box.style, { left: `${100 * left}%`, top: `${100 * top}%`, width: `${100 * width}%`, height: `${100 * height}%` });
    return box;
  };
  const asksPassword = () => {
    const field = made("input", { type: "password", autocomplete: "off", placeholder: "Password", ariaLabel: "Password of this file" });
    const form = made("form", {}, field, made("button", { type: "submit", textContent: "Show the page" }));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      password = field.value;
      showPicture();
    });
    part("said").append(form);
  };
  const showPicture = async () => {
    const mine = ++turn;
    part("body").replaceChildren(quiet("Drawing the page…"));
    let reply;
    try {
      reply = await fetch(`${ROOM}/picture`, asJson({ ...wanted, password }));
    } catch {
      if (mine === turn) say(GONE);
      return;
    }
    if (!reply.headers.get("content-type")?.startsWith("image/png")) {
      const answer = reply.ok ? await reply.json() : { refused: "The page could not be drawn. The app's log has the details." };
      if (mine !== turn) return;
      say(...shown.notices, answer.refused);
      if (answer.needs_password) asksPassword();
      return showText();
    }
    const bytes = await reply.blob();
    if (mine !== turn) return;
    forget();
    picture = URL.createObjectURL(bytes);
    const places = JSON.parse(reply.headers.get("inglenook-boxes"));
    const boxes = places.map(boxAt);
    const image = made("img", { src: picture, alt: `${shown.name}, ${shown.where}` });
    await image.decode().catch(() => {});
    if (mine !== turn) return;
    const isMeant = shown.end > shown.start;
    say(...shown.notices, isMeant && !boxes.length && "These words were not found in the picture of the page; its text has them.");
    const frames = framed(places).map(boxAt);
    part("body").replaceChildren(made("div", { className: "sheet" }, image, made("div", { className: "boxes" }, ...boxes), ...frames));
    for (const frame of frames) frame.classList.add("frame");
    part("body").scrollTop = 0;
    frames[0]?.scrollIntoView({ block: "center" });
  };

  const showBody = () => {
    const isDrawn = shown.can_be_drawn && !isText;
    part("as").hidden = !shown.can_be_drawn;
    part("as").textContent = isText ? "Show the page" : "Show its text";
    say(...shown.notices);
    if (isDrawn) return showPicture();
    turn += 1;
    return showText();
  };
  const ACTS = ["before", "after", "copy", "as"];
  const show = async (page) => {
    const mine = ++turn;
    const pressed = document.activeElement;
    // What they would act on is not there yet.
    for (const name of ACTS) part(name).disabled = true;
    const answer = await answerOf(`${ROOM}/page`, asJson(page));
    if (mine !== turn) return;
    if (answer.refused) {
      say(answer.refused);
      part("body").replaceChildren();
      return;
    }
    shown = answer;
    // From an answer it is one of its passages first, and then a page like any other.
    wanted = { document: shown.document, number: shown.number, stretch: shown.stretch };
    part("name").textContent = shown.name;
    part("name").title = shown.paths.join("\n");
    part("where").textContent = shown.num_pages ? `${shown.where} of ${shown.num_pages.toLocaleString("en")}` : shown.where;
    part("before").disabled = !shown.document || shown.number <= 1;
    part("after").disabled = shown.number >= shown.num_pages;
    part("copy").disabled = shown.end <= shown.start;
    part("as").disabled = false;
    // A button loses the focus when it is disabled.
    const isLost = !find("#passage").contains(document.activeElement) || document.activeElement === find("#passage");
    if (isLost && ACTS.some((name) => part(name) === pressed)) pressed.focus();
    await showBody();
  };
  const turnTo = (step) => show({ ...wanted, number: shown.number + step });
  const copy = async (pressed) => {
    const quote = [...shown.text].slice(shown.start, shown.end).join("");
    let words = "Copied";
    try {
      await navigator.clipboard.writeText(quote);
    } catch {
      // A browser may forbid it, and then the text can still be marked by hand.
      words = "Mark it in the text";
      isText = true;
      showBody();
    }
    pressed.textContent = words;
    setTimeout(() => {
      pressed.textContent = "Copy quote";
    }, 2000);
  };

  const acting = (name, text, act) => Object.assign(button(text, null, act), { id: `passage_${name}` });
  const panel = () => {
    const known = find("#passage");
    if (known) return known;
    const title = made("bdi", { id: "passage_name" });
    const said = made("div", { id: "passage_said", className: "quiet", hidden: true });
    said.setAttribute("role", "status");
    const where = made("span", { id: "passage_where" });
    where.setAttribute("role", "status");
    const actions = made("div", { className: "actions" },
      acting("before", "Page before", () => turnTo(-1)), where, acting("after", "Page after", () => turnTo(1)),
      acting("as", "Show its text", () => {
        isText = !isText;
        showBody();
      }),
      acting("copy", "Copy quote", copy));
    const body = made("div", { id: "passage_body", tabIndex: 0, role: "region", ariaLabel: "The page" });
    const dialog = dialogOf({ id: "passage", name: "A page of your files", title }, actions, said, body);
    dialog.addEventListener("close", () => {
      turn += 1;
      forget();
      password = "";
      part("body").replaceChildren();
      opener?.focus();
    });
    return dialog;
  };
  addEventListener("inglenook:passage", ({ detail }) => {
    const dialog = panel();
    ({ opener } = detail);
    isText = false;
    password = "";
    say();
    part("name").textContent = "";
    part("where").textContent = "";
    part("body").replaceChildren();
    if (!dialog.open) dialog.showModal();
    find("#passage_close").focus();
    const { opener: _, ...page } = detail;
    show(page);
  });

  // ---- chips of an answer
  const CHIP = /^#passage-(.+)-(\d+)-(\d+)$/;
  onLink('#chat a[href^="#passage-"]', (chip) => {
    const named = chip.hash.match(CHIP);
    if (!named) return;
    const [, answer, quotation, citation] = named;
    dispatchEvent(new CustomEvent("inglenook:passage", { detail: { answer, quotation: Number(quotation), citation: Number(citation), opener: chip } }));
  });
})();
