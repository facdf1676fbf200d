// Presets as files: what only a browser can do, which is to save one and to open one.
(() => {
  "use strict";
  const { find, boxIn, made, put, saveAsFile, askForFiles } = inglenook;
  const LARGEST = 1_000_000;
  const say = (sentence) => {
    const button = find("#preset_import");
    find("#preset_refused")?.remove();
    if (!sentence) return;
    const note = made("p", { id: "preset_refused", className: "fault", textContent: sentence });
    note.setAttribute("role", "alert");
    button.closest("#preset_buttons").after(note);
  };
  const save = async () => {
    const name = find("#preset input")?.value;
    if (!name) return;
    const reply = await fetch(`/_app/presets?name=${encodeURIComponent(name)}`);
    if (!reply.ok) return say(await reply.text());
    await saveAsFile(reply);
  };
  const take = async (file) => {
    say("");
    if (file.size > LARGEST) {
      return say(`${file.name} has ${file.size.toLocaleString("en-US")} bytes, and a preset has at most ${LARGEST.toLocaleString("en-US")}: choose a file that was exported as a preset.`);
    }
    const box = boxIn("#preset_file");
    // The same file again is a change, too.
    const text = await file.text();
    put(box, box.value === text ? `${text}\n` : text);
  };
  const choose = () => askForFiles({ accept: ".json,application/json", id: "preset_chooser" }, ([file]) => file && take(file));
  addEventListener("click", (event) => {
    if (event.target.closest?.("#preset_export")) save();
    if (event.target.closest?.("#preset_import")) choose();
  });
})();
