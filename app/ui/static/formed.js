// What the buttons of an answer in a form do: copy it, keep it as a file, bring what was left out.
(() => {
  "use strict";
  const { made, saveAsFile } = inglenook;
  const ID = "formed-";
  const addressOf = (button) => {
    const answer = button.closest(`#chat .formed[id^="${ID}"]`);
    return answer && `/_app/answers/${encodeURIComponent(answer.id.slice(ID.length))}`;
  };
  const fetched = async (address) => {
    const reply = await fetch(address);
    if (!reply.ok) throw new Error(await reply.text());
    return reply;
  };
  const textOf = async (address) => (await fetched(address)).text();

  // A word in the place of the button's own, for a moment.
  const answerWith = (button, words) => {
    button.dataset.words ??= button.textContent;
    button.textContent = words;
    clearTimeout(button.timer);
    button.timer = setTimeout(() => (button.textContent = button.dataset.words), 2500);
  };

  // As an item: what is written as text is spelled back by the page, and an answer is exact already.
  const copy = async (address) => {
    const text = textOf(address).then((text) => new Blob([text], { type: "text/plain" }));
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": text })]);
    return "Copied";
  };
  const download = async (address) => {
    await saveAsFile(await fetched(address));
    return "Downloaded";
  };
  const showAllText = async (address, button) => {
    const text = await textOf(`${address}/laid-out`);
    button.parentElement.textContent = text;
  };
  const rowOf = (cells, isTable) => {
    const row = made(isTable ? "tr" : "li");
    if (!isTable) row.textContent = cells[0];
    else for (const cell of cells) row.insertCell().textContent = cell;
    return row;
  };
  const showMoreRows = async (address, button) => {
    const shape = button.closest(".shape");
    const body = shape.querySelector(":scope > table > tbody, :scope > ol");
    const start = body.children.length;
    const found = await (await fetched(`${address}/rows?start=${start}`)).json();
    body.append(...found.rows.map((cells) => rowOf(cells, body.tagName === "TBODY")));
    const numShown = body.children.length;
    const line = button.parentElement;
    if (numShown >= found.num_rows) return void line.remove();
    const figure = (number) => number.toLocaleString("en-US");
    line.querySelector("span").textContent = `${figure(numShown)} of ${figure(found.num_rows)} shown`;
  };

  const DOES = { copy_all: copy, download, all_text: showAllText, more_rows: showMoreRows };
  addEventListener("click", async (event) => {
    const button = event.target.closest?.(".formed button");
    const address = button && addressOf(button);
    const act = address && DOES[button.className.split(" ").find((name) => name in DOES)];
    if (!act) return;
    try {
      const words = await act(address, button);
      if (words) answerWith(button, words);
    } catch {
      answerWith(button, "That did not work");
    }
  });
})();
