// The tables as a tree: below each its signals, with their last value, its age and alarm.

import { describe, findSignals, tables } from "./api.js";
import { ageText, breakable } from "./format.js";
import { alarmOf, asOf, isState, isWaveform } from "./charts/series.js";
import { stateText } from "./charts/states.js";

const LIMIT = 500, PAUSE = 10_000;

export function tree(root, { chosen, failed, worked }) {
  const list = root.querySelector("ul"), timers = new Map();
  root.addEventListener("toggle", async () => {
    if (!root.open || list.children.length) return;
    try {
      list.replaceChildren(...(await tables()).tables.map(tableItem));
      worked();
    } catch (error) {
      failed(error);
    }
  });

  function tableItem({ table_name: name, description }) {
    const item = document.createElement("li"), part = document.createElement("details");
    const summary = document.createElement("summary"), signals = document.createElement("ul");
    summary.append(name, span("about", description));
    part.append(summary, signals);
    part.addEventListener("toggle", () => show(name, part, signals));
    item.append(part);
    return item;
  }

  async function show(table, part, items) {
    clearTimeout(timers.get(table));
    if (!part.open) return;
    timers.set(table, setTimeout(() => show(table, part, items), PAUSE));
    if (!part.checkVisibility()) return; // of another view
    try {
      const named = await findSignals(`table:${table}`, LIMIT);
      const found = named.filter((signal) => signal.table === table);
      const values = await describe(found.filter((signal) => !isWaveform(signal)).map((signal) => signal.signal));
      if (!part.open) return;
      const focused = [...items.querySelectorAll("button")].indexOf(document.activeElement);
      items.replaceChildren(...found.map((signal) => signalItem(values.get(signal.signal) ?? signal, values)));
      if (named.length === LIMIT) items.append(Object.assign(document.createElement("li"),
        { className: "hint", textContent: `${found.length} of its signals; search to find the others` }));
      items.querySelectorAll("button")[focused]?.focus();
      worked();
    } catch (error) {
      failed(error);
    }
  }

  function signalItem(signal, values) {
    const item = document.createElement("li"), button = document.createElement("button");
    const { value, time } = signal, severity = values.get(`${signal.signal}.SEVR`)?.value;
    button.type = "button";
    button.draggable = true;
    button.title = signal.description;
    const name = span("name", "");
    name.append(...breakable(signal.signal.replace(`${signal.table}/`, "")));
    const at = Date.parse(time); // its name and unit may have differed then
    const text = isWaveform(signal) ? "waveform" : `${stateText(value, signal, at)} ${isState(signal) ? "" : asOf(signal, at).unit}`.trim();
    const alarm = { 1: "warn", MINOR: "warn", 2: "alarm", MAJOR: "alarm", 3: "alarm", INVALID: "alarm" }[severity]
      ?? (isState(signal) ? "" : alarmOf(signal, value));
    button.append(name, span(`value ${alarm}`, isWaveform(signal) || time ? text : ""),
      span("age", isWaveform(signal) ? "" : time ? ageText((Date.now() - at) / 1000) : "never"));
    button.addEventListener("click", (event) => chosen(signal, event.shiftKey));
    button.addEventListener("dragstart", (event) => {
      event.dataTransfer.setData("text/plain", signal.signal);
      event.dataTransfer.effectAllowed = "copy";
    });
    item.append(button);
    return item;
  }
}

const span = (className, textContent) => Object.assign(document.createElement("span"), { className, textContent });
