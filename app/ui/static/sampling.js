// The sampling controls as fields; the page is given what differs from the defaults, as JSON in a
// text box that is not shown, and says what is wrong in a list, which is brought to its fields.
(() => {
  "use strict";
  const { find, boxIn, made, button, put } = inglenook;
  const boxOf = () => boxIn("#sampling_values");
  const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);
  const figure = (number) => (typeof number === "number" ? number.toLocaleString("en-US") : number);

  let values = {};
  let written = null;
  const fields = new Map();
  const groups = [];

  const write = () => {
    const box = boxOf();
    written = JSON.stringify(values);
    put(box, written);
  };
  const valueOf = (control) => (control.name in values ? values[control.name] : control.default);
  const change = (control, value) => {
    if (isSame(value, control.default)) delete values[control.name];
    else values[control.name] = value;
    write();
    count();
  };

  // ---- one field of each kind: what shows a value, and calls `change`
  const asText = (line) => line.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\t", "\\t");
  const fromText = (line) =>
    line.replace(/\\(.)/g, (_, letter) => ({ n: "\n", t: "\t" })[letter] ?? letter);
  const linesOf = (box) => box.value.split("\n").filter((line) => line !== "");

  const numberField = (control, ids) => {
    const number = made("input", { type: "number", id: ids.input, step: "any", inputMode: "decimal" });
    const parts = [number];
    let slider = null;
    const fill = () => slider.style.setProperty("--share", (slider.value - slider.min) / (slider.max - slider.min));
    const slide = (value) => {
      if (!slider) return;
      slider.value = value;
      fill();
    };
    if (control.slider) {
      const [min, max] = control.slider;
      slider = made("input", { type: "range", min, max, step: control.step, ariaLabel: `${control.label}, slider` });
      slider.addEventListener("input", () => {
        number.value = slider.value;
        fill();
        change(control, Number(slider.value));
      });
      parts.unshift(slider);
    }
    number.addEventListener("input", () => {
      // What is no number at all is for the app to refuse, as everything else.
      const value = number.validity.badInput ? "?" : number.value === "" ? control.default : Number(number.value);
      if (number.value !== "") slide(number.value);
      change(control, value);
    });
    number.addEventListener("blur", () => {
      if (number.value === "" && !number.validity.badInput) show(control.default);
    });
    const show = (value) => {
      number.value = value ?? "";
      slide(value);
    };
    return { parts, show };
  };
  // Kept as text: not all of these numbers are exact in a script.
  const exactField = (control, ids) => {
    const box = made("input", { type: "text", id: ids.input, inputMode: "numeric", placeholder: "by chance" });
    box.addEventListener("input", () => change(control, box.value.trim() || control.default));
    return { parts: [box], show: (value) => (box.value = value ?? "") };
  };
  const flagField = (control, ids) => {
    const box = made("input", { type: "checkbox", id: ids.input });
    box.addEventListener("change", () => change(control, box.checked));
    return { parts: [box], show: (value) => (box.checked = value) };
  };
  const linesField = (control, ids, read, spell) => {
    const box = made("textarea", { id: ids.input, rows: 2, spellcheck: false });
    box.addEventListener("input", () => change(control, linesOf(box).map(read)));
    const show = (value) => (box.value = value.map(spell).join("\n"));
    return { parts: [box], show };
  };
  const biasOf = (line) => {
    const [id, bias] = line.split("=").map((part) => part.trim());
    const exact = (text) => (text && Number.isFinite(Number(text)) ? Number(text) : (text ?? ""));
    return [exact(id), exact(bias)];
  };

  // ---- the order: every step can be moved and left out; what is out stands at the end
  const orderField = (control) => {
    const preset = made("select", { ariaLabel: "Order of the steps" });
    const names = Object.keys(catalogue.orders);
    preset.append(...[...names, "own"].map((name) => made("option", { value: name, textContent: name === "own" ? "An order of your own" : `As ${name}` })));
    preset.lastChild.disabled = true;
    preset.addEventListener("change", () => take(catalogue.orders[preset.value]));
    const list = made("ol", { className: "order" });
    let order = [];
    const take = (next, focused) => {
      show(next);
      change(control, next);
      focused?.();
    };
    const item = (name, place) => {
      const label = catalogue.steps[name];
      const runs = made("input", { type: "checkbox", checked: place >= 0 });
      runs.addEventListener("change", () => {
        const next = runs.checked ? [...order, name] : order.filter((each) => each !== name);
        take(next, () => list.querySelector(`[data-step="${name}"] input`).focus());
      });
      const move = (by, kind) => {
        const isAtEdge = place < 0 || place + by < 0 || place + by >= order.length;
        const mover = button("", `Move ${label} ${kind}`, () => {
          const next = order.filter((each) => each !== name);
          next.splice(place + by, 0, name);
          take(next, () => {
            const row = list.querySelector(`[data-step="${name}"]`);
            (row.querySelector(`.${kind}:enabled`) ?? row.querySelector("button:enabled"))?.focus();
          });
        });
        return Object.assign(mover, { className: kind, title: `Move ${kind}`, disabled: isAtEdge });
      };
      const row = made("li", { className: place < 0 ? "out" : "" }, made("label", {}, runs, made("span", { textContent: label })), move(-1, "up"), move(1, "down"));
      row.dataset.step = name;
      return row;
    };
    const show = (value) => {
      order = [...value];
      const out = Object.keys(catalogue.steps).filter((name) => !order.includes(name));
      list.replaceChildren(...order.map(item), ...out.map((name) => item(name, -1)));
      preset.value = names.find((name) => isSame(catalogue.orders[name], order)) ?? "own";
    };
    return { parts: [preset, list], show };
  };

  const KINDS = {
    number: numberField,
    exact: exactField,
    flag: flagField,
    texts: (control, ids) => linesField(control, ids, fromText, asText),
    biases: (control, ids) => linesField(control, ids, biasOf, ([id, bias]) => `${id}=${bias}`),
    order: orderField,
  };

  const rangeOf = (control) => {
    const range = "low" in control ? `${figure(control.low)} to ${figure(control.high)}` : "";
    const plain = ["number", "flag"].includes(control.kind) && control.default !== null;
    const usual = !plain ? "" : control.kind === "flag" ? `default ${control.default ? "on" : "off"}` : `default ${figure(control.default)}`;
    return [range, usual].filter(Boolean).join(", ");
  };
  const rowOf = (control) => {
    const ids = { input: `control_${control.name}`, help: `help_${control.name}`, fault: `fault_${control.name}` };
    const field = KINDS[control.kind](control, ids);
    const label = made("label", { htmlFor: ids.input, textContent: control.label });
    const help = made("small", { id: ids.help });
    const range = rangeOf(control);
    help.append(...[control.help, range && `(${range})`].filter(Boolean).join(" "));
    const fault = made("p", { id: ids.fault, className: "fault", hidden: true });
    fault.setAttribute("role", "alert");
    const row = made("div", { className: `control ${control.kind}` }, label, made("div", { className: "entry" }, ...field.parts), help, fault);
    for (const part of field.parts) {
      part.setAttribute("aria-describedby", `${ids.help} ${ids.fault}`);
    }
    row.dataset.name = control.name;
    fields.set(control.name, { control, field, fault, row });
    return row;
  };
  const groupOf = (group) => {
    const changed = made("span", { className: "changed" });
    const reset = button("Reset", `Reset ${group.title}`, () => {
      for (const control of group.controls) {
        delete values[control.name];
        fields.get(control.name).field.show(control.default);
      }
      write();
      count();
    });
    reset.className = "reset";
    const summary = made("summary", {}, made("span", { textContent: group.title }), changed);
    const details = made("details", { open: group.is_open, className: "controls" }, summary, ...group.controls.map(rowOf), reset);
    groups.push({ group, changed, reset });
    return details;
  };
  const count = () => {
    for (const { group, changed, reset } of groups) {
      const number = group.controls.filter((control) => control.name in values).length;
      changed.textContent = number ? `${number} changed` : "";
      reset.disabled = number === 0;
    }
  };

  // ---- what the page says of them
  let said = null;
  const bringFaults = () => {
    const list = find("#sampling_faults");
    const text = list?.innerHTML ?? "";
    if (!fields.size || text === said) return;
    said = text;
    const found = new Map([...(list?.querySelectorAll("p.fault") ?? [])].map((each) => [[...each.classList].find((name) => name.startsWith("of-"))?.slice(3), each.textContent]));
    for (const [name, { fault, row }] of fields) {
      fault.textContent = found.get(name) ?? "";
      fault.hidden = !found.has(name);
      for (const input of row.querySelectorAll("input, textarea")) input.ariaInvalid = String(found.has(name));
      if (found.has(name)) row.closest("details").open = true;
    }
    list?.classList.toggle("of-all", found.has("sampling"));
  };

  let catalogue = null;
  const draw = (block) => {
    catalogue = JSON.parse(find("#sampling_catalogue").textContent);
    block.after(made("div", { id: "sampling" }, ...catalogue.groups.map(groupOf)));
  };
  // The page has put other values there, or shows the box for the first time.
  const follow = () => {
    const block = find("#sampling_values");
    const box = boxOf();
    if (!block || !box) return;
    if (!find("#sampling")) draw(block);
    bringFaults();
    if (box.value === written) return;
    written = box.value;
    values = JSON.parse(box.value || "{}");
    for (const { control, field } of fields.values()) field.show(valueOf(control));
    count();
  };
  // A value that the page writes into a box is no change of the document.
  setInterval(follow, 150);
})();
