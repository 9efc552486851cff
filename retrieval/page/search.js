// The list of signals, searched while the user types.

import { findSignals } from "./api.js";
import { breakable } from "./format.js";
import { isWaveform } from "./charts/series.js";
import { findViews } from "./views.js";

const LIMIT = 200;

export function search(box, list, count, { chosen, failed, worked }) {
  let running, chosenIndex = 0, dragged = false, held = null, found = [];

  async function find() {
    running?.abort();
    running = new AbortController();
    try {
      const { signal } = running;
      const [signals, views] = await Promise.all([findSignals(box.value, LIMIT, signal), box.value.trim() ? findViews(box.value) : []]);
      if (signal.aborted) return;
      const asItem = (view) => ({ ...view, signal: view.name, unit: `view of ${view.owner}`, type: "", table: "" });
      show([...views.map(asItem), ...signals]);
      worked();
    } catch (error) {
      if (error.name !== "AbortError") failed(error);
    }
  }

  function show(signals) {
    // a dragged item must stay
    if (dragged) {
      held = signals;
      return;
    }
    found = signals;
    list.replaceChildren(...signals.map((signal, index) => {
      const item = document.createElement("li");
      item.id = `found-${index}`;
      item.role = "option";
      item.draggable = signal.owner === undefined;
      item.dataset.signal = signal.signal;
      const unit = isWaveform(signal) ? `waveform ${signal.unit}` : signal.unit;
      for (const [name, text] of [["name", signal.signal], ["unit", unit], ["about", signal.description]]) {
        if (!text && name === "about") continue;
        const part = document.createElement("span");
        part.className = name;
        part.append(...(name === "name" ? breakable(text) : [text]));
        item.append(part);
      }
      return item;
    }));
    if (!box.value.trim()) exemplify(signals);
    const number = signals.filter(({ owner }) => owner === undefined).length;
    count.textContent = number === LIMIT ? `the first ${LIMIT} signals; type more to narrow them`
      : signals.length ? `${number} signal${number === 1 ? "" : "s"}`
      : "No signal has these words in its name, description or unit.";
    select(0);
  }

  // Words to search for, as examples: the last parts of names.
  function exemplify(signals) {
    const words = signals.flatMap(({ signal, table }) => signal.replace(table, "").match(/[A-Za-z]{3,}/g)?.at(-1) ?? []);
    const [first, second] = new Set(words);
    document.getElementById("examples").textContent = !first ? "" : `, as ${first}${second ? ` or ${second}` : ""}`;
  }

  function select(index) {
    const items = list.children;
    chosenIndex = Math.max(0, Math.min(index, items.length - 1));
    for (const [position, item] of [...items].entries()) item.ariaSelected = String(position === chosenIndex);
    const item = items[chosenIndex];
    if (item) {
      box.setAttribute("aria-activedescendant", item.id);
      item.scrollIntoView({ block: "nearest" });
    }
  }

  let pause;
  box.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(find, 80);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      select(chosenIndex + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter" && list.children[chosenIndex]) {
      chosen(found[chosenIndex], event.shiftKey);
    }
  });
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (!item) return;
    select([...list.children].indexOf(item));
    chosen(found[chosenIndex], event.shiftKey);
  });
  list.addEventListener("dragend", () => {
    dragged = false;
    if (held) show(held);
    held = null;
  });
  list.addEventListener("dragstart", (event) => {
    dragged = true;
    event.dataTransfer.setData("text/plain", event.target.closest("li").dataset.signal);
    event.dataTransfer.effectAllowed = "copy";
  });
  find();
  return { find };
}
