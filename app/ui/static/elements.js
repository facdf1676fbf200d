// The pieces that the scripts of the page have in common: `inglenook` holds them. The scripts that
// come first give them to it, those that follow take what they need by name.
(() => {
  "use strict";
  const find = (selector) => document.querySelector(selector);
  // The box of the page library in which a script and the app give each other values.
  const boxIn = (selector) => find(`${selector} :is(textarea, input)`);
  // A child that is nothing is left out.
  const made = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children.filter(Boolean));
    return element;
  };
  // Without a label it is called by its text.
  const button = (textContent, label, act) => {
    const element = made("button", { type: "button", textContent });
    if (label) element.ariaLabel = label;
    element.addEventListener("click", () => act(element));
    return element;
  };
  // Until what it gives is called, a button says what goes on, and cannot be pressed again.
  const busy = (pressed, words) => {
    const before = pressed.textContent;
    pressed.disabled = true;
    pressed.textContent = words;
    return () => {
      pressed.disabled = false;
      pressed.textContent = before;
    };
  };
  const quiet = (textContent) => made("p", { className: "quiet", textContent });
  // The choices are pairs of a text and a value.
  const picker = (choices, value, properties = {}) => {
    const select = made("select", properties, ...choices.map(([textContent, each]) => made("option", { textContent, value: each })));
    select.value = String(value ?? "");
    return select;
  };
  // A value in a box of the page, as if it were typed: the page library hears of it.
  const put = (box, value) => {
    box.value = value;
    box.dispatchEvent(new Event("input", { bubbles: true }));
  };
  // Before the page library, which keeps a click on a link within the page to itself.
  const onLink = (selector, act) =>
    addEventListener("click", (event) => {
      const link = event.target.closest?.(selector);
      if (!link) return;
      event.preventDefault();
      event.stopPropagation();
      act(link);
    }, true);
  window.inglenook = Object.freeze({ find, boxIn, made, button, busy, quiet, picker, put, onLink });
})();
