// The report on this machine goes to the clipboard, and the button says so; updates are announced.
(() => {
  "use strict";
  const { find, boxIn } = inglenook;
  const SHOWN_MS = 2500;
  const copy = async (button) => {
    const text = boxIn("#machine_report")?.value ?? "";
    let said = "Nothing to copy yet";
    if (text) {
      said = await navigator.clipboard.writeText(text).then(
        () => "Copied",
        () => "The browser does not allow it",
      );
    }
    const name = button.textContent;
    button.textContent = said;
    button.disabled = true;
    setTimeout(() => {
      button.textContent = name;
      button.disabled = false;
    }, SHOWN_MS);
  };
  addEventListener("click", (event) => {
    const button = event.target.closest("#machine_copy");
    if (button) copy(button);
    // Whoever does not see the answer hears it.
    if (event.target.closest("#machine_updates")) find("#machine_newest")?.setAttribute("role", "status");
  });
})();
