// Files that come from the reader or from elsewhere: dropped, chosen, and on their way.
(() => {
  "use strict";
  const { find, made, button, quiet } = inglenook;

  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  // A message carries pictures and sounds; other files are documents.
  const isSeenOrHeard = ({ type, name }) => /^(image|audio)\//.test(type) || /\.(png|jpe?g|webp|gif|bmp|wav)$/i.test(name);

  const chooserOf = (properties, take) => {
    const input = made("input", { type: "file", hidden: true, ...properties });
    input.addEventListener("change", () => {
      take([...input.files]);
      // So that the same file can be chosen again.
      input.value = "";
    });
    return input;
  };
  const askForFiles = (properties, take) => {
    find(`#${properties.id}`)?.remove();
    const input = chooserOf(properties, take);
    document.body.append(input);
    input.click();
  };
  // Where files are dropped, or chosen by whoever cannot drop them.
  const zoneOf = ({ words, text, label, hint, ...properties }, take) => {
    const input = chooserOf(properties, take);
    return made("div", { className: "zone" }, made("span", { textContent: words }), button(text, label, () => input.click()), input, quiet(hint));
  };
  const onDropped = (dialog, take) => {
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
    dialog.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      // What they fell on may be drawn anew, and would then seem to be outside of any sheet.
      event.stopPropagation();
      mark(false);
      // Taken now: they are gone after the event.
      take([...event.dataTransfer.files]);
    });
  };

  // One that is on its way: how much of it has come is told by `show`.
  const rowOnItsWay = (name, buttons, message) => {
    const bar = made("progress", { value: 0, max: 1, ariaLabel: `Progress of ${name}` });
    const words = quiet("");
    const fault = message && made("p", { className: "wrong", textContent: message });
    const element = made("div", { className: "download" }, made("p", { className: "name", textContent: name }), bar, words, fault, made("div", { className: "actions" }, ...buttons));
    const show = (share, text) => {
      bar.value = share;
      words.textContent = text;
    };
    return { element, show };
  };
  window.inglenook = Object.freeze({ ...inglenook, hasFiles, isSeenOrHeard, askForFiles, zoneOf, onDropped, rowOnItsWay });
})();
