// The examples before a conversation as rows; the page is given them as JSON in a text box that is
// not shown.
(() => {
  "use strict";
  const find = (selector) => document.querySelector(selector);
  const boxOf = () => find("#example_values :is(textarea, input)");
  const made = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  let examples = [];
  let written = null;
  const write = () => {
    const box = boxOf();
    written = box.value = JSON.stringify(examples);
    box.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const sideOf = (example, index, side, placeholder) => {
    const ariaLabel = `${placeholder}, example ${index + 1}`;
    const box = made("textarea", { rows: 2, placeholder, ariaLabel, value: example[side] ?? "" });
    box.addEventListener("input", () => {
      examples[index] = { ...examples[index], [side]: box.value };
      write();
    });
    return box;
  };
  const rowOf = (example, index) => {
    const remove = made("button", { type: "button", textContent: "Remove", ariaLabel: `Remove example ${index + 1}` });
    remove.addEventListener("click", () => {
      examples.splice(index, 1);
      write();
      draw();
      find("#add_example").focus();
    });
    const row = made("div", { className: "example" }, sideOf(example, index, "user", "A message"), sideOf(example, index, "assistant", "Its answer"), remove);
    row.setAttribute("role", "group");
    row.ariaLabel = `Example ${index + 1}`;
    return row;
  };
  const draw = () => {
    const more = made("button", { type: "button", id: "add_example", textContent: "Add an example" });
    more.addEventListener("click", () => {
      examples.push({ user: "", assistant: "" });
      draw();
      [...document.querySelectorAll("#example_editor .example")].at(-1).querySelector("textarea").focus();
    });
    find("#example_editor").replaceChildren(...examples.map(rowOf), more);
  };
  const follow = () => {
    const block = find("#example_values");
    const box = boxOf();
    if (!block || !box) return;
    if (!find("#example_editor")) {
      block.after(made("div", { id: "example_editor" }));
      written = null;
    }
    if (box.value === written) return;
    written = box.value;
    examples = JSON.parse(box.value || "[]");
    draw();
  };
  // A value that the page writes into a box is no change of the document.
  setInterval(follow, 150);
})();
