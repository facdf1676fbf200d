// The fields of a form as rows; the page is given them as JSON in a text box that is not shown.
(() => {
  "use strict";
  const { find, boxIn, made, button, picker, put, onLink } = inglenook;
  const KINDS = ["text", "number", "whole number", "yes or no", "one of", "list of texts", "date", "e-mail"];
  const EMPTY = { name: "", kind: "text", is_needed: true, meaning: "", choices: [] };
  const boxOf = () => boxIn("#form_fields");
  let fields = [];
  let written = null;

  const write = () => {
    const box = boxOf();
    if (!box) return;
    written = JSON.stringify(fields);
    put(box, written);
  };
  const change = (index, changes) => {
    fields[index] = { ...fields[index], ...changes };
    write();
  };

  const rowOf = (field, index) => {
    const called = `field ${index + 1}`;
    const name = made("input", { value: field.name, placeholder: "Name", ariaLabel: `Name of ${called}`, className: "name" });
    name.addEventListener("input", () => change(index, { name: name.value }));
    name.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) add(index + 1);
    });
    const kind = picker(KINDS.map((each) => [each, each]), field.kind, { ariaLabel: `Kind of ${called}`, className: "kind" });
    kind.addEventListener("change", () => {
      // Typed letters choose, too: the focus stays, and nothing of the row is made anew.
      change(index, { kind: kind.value });
      choices.hidden = kind.value !== "one of";
    });
    const needed = made("input", { type: "checkbox", checked: field.is_needed });
    needed.addEventListener("change", () => change(index, { is_needed: needed.checked }));
    const meaning = made("input", { value: field.meaning, placeholder: "What it means", ariaLabel: `What ${called} means`, className: "meaning" });
    meaning.addEventListener("input", () => change(index, { meaning: meaning.value }));
    const choices = made("input", { value: field.choices.map((each) => each.trim()).join(", "), placeholder: "red, green, blue", ariaLabel: `Choices of ${called}`, className: "choices" });
    choices.addEventListener("input", () => change(index, { choices: choices.value.split(",") }));
    const up = Object.assign(button("", `Move ${called} up`, () => move(index)), { className: "up", title: "Move up", disabled: index === 0 });
    const remove = Object.assign(button("", `Remove ${called}`, () => drop(index)), { className: "remove", title: "Remove" });
    const row = made("div", { className: "field", role: "group", ariaLabel: `Field ${index + 1}` });
    choices.hidden = field.kind !== "one of";
    const isNeeded = made("label", { className: "needed" }, needed, " needed");
    row.append(name, kind, isNeeded, choices, meaning, up, remove);
    return row;
  };

  const rows = () => [...document.querySelectorAll("#field_editor .field")];
  const draw = () => {
    const editor = find("#field_editor");
    const more = button("Add a field", null, () => add(fields.length));
    more.id = "add_field";
    editor.replaceChildren(...fields.map(rowOf), more);
  };
  const redraw = () => {
    write();
    draw();
  };
  const add = (index) => {
    fields.splice(index, 0, { ...EMPTY });
    redraw();
    rows()[index].querySelector(".name").focus();
  };
  const move = (index) => {
    fields.splice(index - 1, 0, ...fields.splice(index, 1));
    redraw();
    rows()[index - 1].querySelector(index > 1 ? ".up" : ".name").focus();
  };
  const drop = (index) => {
    fields.splice(index, 1);
    redraw();
    (rows()[Math.min(index, fields.length - 1)]?.querySelector(".name") ?? find("#add_field")).focus();
  };

  // The page has put other fields there, or shows the box for the first time.
  const follow = () => {
    const block = find("#form_fields");
    const box = boxOf();
    if (!block || !box) return;
    if (find("#field_editor") && box.value === written) return;
    if (!find("#field_editor")) block.after(made("div", { id: "field_editor" }));
    written = box.value;
    fields = JSON.parse(box.value || "[]");
    if (!fields.length) fields = [{ ...EMPTY }];
    draw();
  };

  // ---- the place of a fault: the cursor goes there
  const AT = "#at-";
  const goTo = (link) => {
    const [line, column] = link.hash.slice(AT.length).split("-").map(Number);
    const part = [...document.querySelectorAll("#form_dialog .form_part")].find((each) => each.checkVisibility());
    const box = part?.querySelector("textarea");
    if (!box) return;
    const before = box.value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const at = Math.min(before + column - 1, box.value.length);
    box.focus();
    box.setSelectionRange(at, Math.min(at + 1, box.value.length));
  };
  onLink(`#form_verdict a[href^="${AT}"]`, goTo);
  const told = () => {
    const verdict = find("#form_verdict");
    if (verdict && verdict.role !== "status") verdict.role = "status";
    const opener = find("#answer_as");
    if (opener) opener.ariaHasPopup = "dialog";
  };
  const waiting = setInterval(() => {
    if (!document.body) return;
    clearInterval(waiting);
    new MutationObserver(() => {
      follow();
      told();
    }).observe(document.body, { subtree: true, childList: true });
  }, 50);
})();
