// The examples before a conversation as rows; the page is given them as JSON in a text box that is
// not shown.
(() => {
  "use strict";
  const { find, boxIn, made, button, put } = inglenook;
  const boxOf = () => boxIn("#example_values");
  let examples = [];
  let written = null;
  const write = () => {
    const box = boxOf();
    written = JSON.stringify(examples);
    put(box, written);
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
    const remove = button("Remove", `Remove example ${index + 1}`, () => {
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
    const more = button("Add an example", null, () => {
      examples.push({ user: "", assistant: "" });
      draw();
      [...document.querySelectorAll("#example_editor .example")].at(-1).querySelector("textarea").focus();
    });
    more.id = "add_example";
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
