// A sheet over the page: one with a head and a way to close it, and one that has tabs as well.
(() => {
  "use strict";
  const { find, made, button, onDropped } = inglenook;

  const dialogOf = ({ id, name, title = name }, ...parts) => {
    const close = Object.assign(button("Close", null, () => dialog.close()), { id: `${id}_close` });
    const dialog = made("dialog", { id, ariaLabel: name }, made("div", { className: "head" }, made("h2", {}, title), close), ...parts);
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
    // The page's own keys, such as the one that stops an answer, are not meant here.
    dialog.addEventListener("keydown", (event) => event.stopPropagation());
    document.body.append(dialog);
    return dialog;
  };

  // It is made when it is opened first. A tab has a name, a title and what shows it; if it likes,
  // parts that stay, and what takes files, wherever on the sheet they are dropped.
  const sheetOf = ({ id, name, tabs, above = () => [], prepared = () => {} }) => {
    const tabAt = (each) => find(`#${id}_tab_${each}`);
    const panelAt = (each) => find(`#${id}_${each}`);
    const current = () => tabs.find((each) => panelAt(each.name)?.hidden === false)?.name;
    const say = (sentence, isWrong = true) => {
      const note = find(`#${id}_said`);
      if (!note) return;
      // Said again it would be read out again.
      if (note.textContent !== sentence) note.textContent = sentence;
      note.className = isWrong ? "wrong" : "";
      note.hidden = !sentence;
    };
    const show = (wanted, ...given) => {
      for (const each of tabs) {
        const isShown = each.name === wanted;
        const tab = tabAt(each.name);
        tab.ariaSelected = String(isShown);
        tab.tabIndex = isShown ? 0 : -1;
        panelAt(each.name).hidden = !isShown;
      }
      return tabs.find((each) => each.name === wanted).show(...given);
    };

    const tabOf = (each) => {
      const tab = button(each.title, null, () => {
        say("");
        show(each.name);
      });
      tab.id = `${id}_tab_${each.name}`;
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", `${id}_${each.name}`);
      return tab;
    };
    const panelOf = (each) => {
      const panel = made("div", { id: `${id}_${each.name}`, hidden: true }, ...(each.parts?.() ?? []));
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", `${id}_tab_${each.name}`);
      return panel;
    };
    const onTabKey = (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const at = tabs.findIndex((each) => each.name === current()) + step;
      const next = tabs[(at + tabs.length) % tabs.length].name;
      show(next);
      tabAt(next).focus();
    };
    const makeIt = () => {
      const row = made("div", { className: "tabs" }, ...tabs.map(tabOf));
      row.setAttribute("role", "tablist");
      row.addEventListener("keydown", onTabKey);
      const said = made("p", { id: `${id}_said`, hidden: true });
      said.setAttribute("role", "alert");
      const dialog = dialogOf({ id, name }, row, said, ...above(), ...tabs.map(panelOf));
      const taking = tabs.find((each) => each.take);
      if (taking) {
        onDropped(dialog, async (files) => {
          await show(taking.name);
          taking.take(files);
        });
      }
      prepared(dialog);
      return dialog;
    };
    const isOpen = () => Boolean(find(`#${id}`)?.open);
    const open = () => {
      const dialog = find(`#${id}`) ?? makeIt();
      dialog.showModal();
      say("");
      show(tabs[0].name);
      tabAt(tabs[0].name).focus();
    };
    return Object.freeze({ say, show, current, isOpen, open });
  };
  window.inglenook = Object.freeze({ ...inglenook, dialogOf, sheetOf });
})();
