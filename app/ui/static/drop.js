// A model file that is dropped on the sheet of the models, or chosen there: it is sent once, straight
// into the models folder, since a page is told no path by which it could be used where it lies.
(() => {
  "use strict";
  const { made, button, zoneOf, rowOnItsWay } = inglenook;
  const HINT = "It is copied into the models folder; where the room is short, add it by its path instead.";
  const inWords = (bytes) => {
    for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
      if (bytes >= size) return `${(bytes / size).toFixed(bytes < 10 * size ? 1 : 0)} ${unit}`;
    }
    return `${bytes} bytes`;
  };
  // What a file says of itself stands in its first four bytes.
  const beginningOf = async (file) => String.fromCharCode(...new Uint8Array(await file.slice(0, 4).arrayBuffer()));

  const coming = [];
  const stay = (event) => event.preventDefault();
  // A page that is left takes with it what it is sending.
  const holdPage = () => (coming.length ? addEventListener : removeEventListener)("beforeunload", stay);

  const rowOf = (file, giveUp) => {
    const { element, show } = rowOnItsWay(file.name, [button("Give up", `Give up ${file.name}`, giveUp)]);
    const showBytes = (num_bytes) =>
      show(num_bytes / file.size, num_bytes < file.size ? `${inWords(num_bytes)} of ${inWords(file.size)} copied` : "looking at it…");
    showBytes(0);
    return { element, showBytes };
  };

  // The answer, or nothing when it was given up. `fetch` would not tell how far it is.
  const sent = (file, request, showBytes) =>
    new Promise((end, fail) => {
      request.open("POST", `/_app/models/drop?name=${encodeURIComponent(file.name)}`);
      request.responseType = "json";
      request.upload.addEventListener("progress", (event) => showBytes(event.loaded));
      request.addEventListener("load", () => (request.response ? end(request.response) : fail()));
      request.addEventListener("error", fail);
      request.addEventListener("abort", () => end(null));
      request.send(file);
    });

  const copy = async (file, { ask, say, arrived }, rows) => {
    let beginning;
    try {
      beginning = await beginningOf(file);
    } catch {
      return say(`${file.name} cannot be read: it may be a folder, or gone.`);
    }
    if (!(await ask("/announce", { name: file.name, num_bytes: file.size, beginning }))) return;
    const request = new XMLHttpRequest();
    const row = rowOf(file, () => request.abort());
    coming.push(file);
    holdPage();
    rows.append(row.element);
    try {
      const answer = await sent(file, request, row.showBytes);
      if (answer?.refused) say(answer.refused);
      else if (answer) arrived(answer, `${file.name} is here now.`);
    } catch {
      say(`${file.name} broke off, and nothing of it is kept: choose it again.`);
    }
    row.element.remove();
    coming.splice(coming.indexOf(file), 1);
    holdPage();
  };

  // The place for them, and what takes them; `models` asks the app, and shows what came of it.
  const modelDrop = (models) => {
    const rows = made("div", { id: "models_coming" });
    const take = async (files) => {
      if (!files.length) return;
      models.say("");
      // One after the other: a disk is not faster for two.
      for (const file of files) await copy(file, models, rows);
    };
    const zone = zoneOf({ words: "Drop a GGUF file here, or ", text: "Choose a file…", label: "Choose a GGUF file", hint: HINT, accept: ".gguf", multiple: true, id: "model_file" }, take);
    return { element: made("div", { id: "models_drop" }, rows, zone), take };
  };
  window.inglenook = Object.freeze({ ...inglenook, modelDrop });
})();
