// A model file that is dropped on the sheet of the models, or chosen there: it is sent once, straight
// into the models folder, since a page is told no path by which it could be used where it lies.
(() => {
  "use strict";
  const { made, button, quiet } = inglenook;
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
    const bar = made("progress", { value: 0, max: 1, ariaLabel: `Progress of ${file.name}` });
    const words = quiet("");
    const cancel = button("Give up", `Give up ${file.name}`, giveUp);
    const element = made("div", { className: "download" }, made("p", { className: "name", textContent: file.name }), bar, words, made("div", { className: "actions" }, cancel));
    const show = (num_bytes) => {
      bar.value = num_bytes / file.size;
      words.textContent = num_bytes < file.size ? `${inWords(num_bytes)} of ${inWords(file.size)} copied` : "looking at it…";
    };
    show(0);
    return { element, show };
  };

  // The answer, or nothing when it was given up. `fetch` would not tell how far it is.
  const sent = (file, request, show) =>
    new Promise((end, fail) => {
      request.open("POST", `/_app/models/drop?name=${encodeURIComponent(file.name)}`);
      request.responseType = "json";
      request.upload.addEventListener("progress", (event) => show(event.loaded));
      request.addEventListener("load", () => (request.response ? end(request.response) : fail()));
      request.addEventListener("error", fail);
      request.addEventListener("abort", () => end(null));
      request.send(file);
    });

  const copy = async (file, sheet, rows) => {
    let beginning;
    try {
      beginning = await beginningOf(file);
    } catch {
      return sheet.say(`${file.name} cannot be read: it may be a folder, or gone.`);
    }
    if (!(await sheet.ask("/announce", { name: file.name, num_bytes: file.size, beginning }))) return;
    const request = new XMLHttpRequest();
    const row = rowOf(file, () => request.abort());
    coming.push(file);
    holdPage();
    rows.append(row.element);
    try {
      const answer = await sent(file, request, row.show);
      if (answer?.refused) sheet.say(answer.refused);
      else if (answer) sheet.arrived(answer, `${file.name} is here now.`);
    } catch {
      sheet.say(`${file.name} broke off, and nothing of it is kept: choose it again.`);
    }
    row.element.remove();
    coming.splice(coming.indexOf(file), 1);
    holdPage();
  };

  const prepare = ({ detail: sheet }) => {
    const rows = made("div", { id: "models_coming" });
    const take = async (files) => {
      if (!files.length) return;
      sheet.say("");
      // One after the other: a disk is not faster for two.
      for (const file of files) await copy(file, sheet, rows);
    };
    const input = made("input", { type: "file", accept: ".gguf", multiple: true, hidden: true, id: "model_file" });
    input.addEventListener("change", () => {
      take([...input.files]);
      // So that the same file can be chosen again.
      input.value = "";
    });
    const choose = button("Choose a file…", "Choose a GGUF file", () => input.click());
    const zone = made("div", { className: "zone" }, made("span", { textContent: "Drop a GGUF file here, or " }), choose, input, quiet("It is copied into the models folder; where the room is short, add it by its path instead."));
    sheet.place.append(rows, zone);

    const { dialog } = sheet;
    const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
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
    dialog.addEventListener("drop", async (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      mark(false);
      // Taken first: they are gone after the event.
      const files = [...event.dataTransfer.files];
      await sheet.show("here");
      take(files);
    });
  };
  addEventListener("inglenook:models", prepare);
})();
