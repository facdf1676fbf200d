// Asking the app, and taking what it gives as a file.
(() => {
  "use strict";
  const { made } = inglenook;
  const GONE = "The app does not answer: is it still running?";
  const FAILED = "That did not work. The app's log has the details.";
  const SOON_MS = 60000;

  const asJson = (given) => ({ method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(given) });
  // What it answers; where there is nothing, the sentence that says why stands in `refused`.
  const answerOf = async (address, options) => {
    try {
      const reply = await fetch(address, options);
      return reply.ok ? await reply.json() : { refused: FAILED };
    } catch {
      return { refused: GONE };
    }
  };
  // For one part of the app, whose refusals are said: then there is no answer.
  const asker = (room, say) => async (path, given) => {
    const answer = await answerOf(`${room}${path}`, given && asJson(given));
    if (!answer.refused) return answer;
    say(answer.refused);
    return null;
  };

  // A reply that has a name becomes a file of the reader's.
  const saveAsFile = async (reply) => {
    const [, name] = reply.headers.get("content-disposition").match(/filename\*=UTF-8''(.+)$/);
    const link = made("a", { href: URL.createObjectURL(await reply.blob()), download: decodeURIComponent(name) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), SOON_MS);
  };
  window.inglenook = Object.freeze({ ...inglenook, GONE, asJson, answerOf, asker, saveAsFile });
})();
