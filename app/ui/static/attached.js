// Pictures and sounds of the next message: what only a browser can do, which is to open files, to
// take what is pasted or dropped, and to bring it to the app.
(() => {
  "use strict";
  const { find, boxIn, made, put, hasFiles, isSeenOrHeard, askForFiles } = inglenook;
  const IMAGES = ".png,.jpg,.jpeg,.webp,.gif,.bmp,image/png,image/jpeg,image/webp,image/gif,image/bmp";
  const SOUNDS = ".wav,audio/wav";
  let senses = { sees: false, hears: false };
  let numOnTheWay = 0;

  const box = () => boxIn("#attached");
  const ids = () => {
    try {
      return JSON.parse(box()?.value || "[]");
    } catch {
      return [];
    }
  };
  const keep = (list) => {
    put(box(), list.length ? JSON.stringify(list) : "");
  };
  const say = (sentence, isFault) => {
    find("#attach_note")?.remove();
    if (!sentence) return;
    const note = made("p", { id: "attach_note", textContent: sentence });
    note.className = isFault ? "fault" : "quiet";
    note.setAttribute("role", isFault ? "alert" : "status");
    find("#attached_strip").before(note);
  };
  const bring = async (file) => {
    numOnTheWay += 1;
    say(`Reading ${file.name}…`, false);
    let fault = "";
    try {
      const reply = await fetch(`/_app/attachments?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      if (reply.ok) keep([...ids(), (await reply.json()).id]);
      else fault = await reply.text();
    } catch {
      fault = `${file.name} could not be brought to the app: try again.`;
    }
    numOnTheWay -= 1;
    if (fault) say(fault, true);
    else if (!numOnTheWay) say("", false);
  };
  const bringAll = async (files) => {
    // One after the other, as each is read by a process of its own.
    for (const file of files) await bring(file);
  };
  const canTake = () => senses.sees || senses.hears;
  const choose = () => {
    const accept = [senses.sees && IMAGES, senses.hears && SOUNDS].filter(Boolean).join(",");
    askForFiles({ multiple: true, accept, id: "attach_chooser" }, bringAll);
  };
  addEventListener("inglenook-state", ({ detail }) => {
    senses = { sees: Boolean(detail.sees), hears: Boolean(detail.hears) };
    const button = find("#attach");
    if (!button) return;
    const what = [senses.sees && "a picture", senses.hears && "a sound"].filter(Boolean).join(" or ");
    button.classList.toggle("usable", canTake());
    if (what && button.textContent.trim() !== `Add ${what}`) button.textContent = `Add ${what}`;
  });
  addEventListener("click", (event) => {
    if (event.target.closest?.("#attach")) choose();
    const chip = event.target.closest?.("#attached_strip button[data-id]");
    if (!chip) return;
    keep(ids().filter((each) => each !== chip.dataset.id));
    find("#composer textarea")?.focus();
  });
  addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (!files.length || !event.target.closest?.("#composer")) return;
    // Other programs put a picture of a text beside the text: where the model sees none, that goes.
    if (!canTake() && event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    bringAll(files);
  }, true);
  addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    if (!hasFiles(event) || event.target.closest?.("dialog")) return;
    event.preventDefault();
    // Others are documents, and asks.js offers to take them in. What the model cannot see or hear
    // is refused in a sentence by the app.
    bringAll([...event.dataTransfer.files].filter(isSeenOrHeard));
  });
})();
