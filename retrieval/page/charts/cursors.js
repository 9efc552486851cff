// Two cursors on every chart of time: movable lines, and the values at them.

import { durationText, timeText, valueText } from "../format.js";
import { between, indexAt, isState, nearest, stateAt } from "./series.js";
import { change, state } from "../state.js";
import { stateText } from "./states.js";

const NAMES = ["a", "b"];

export class Cursors {
  constructor(chart) {
    this.chart = chart;
    this.handles = NAMES.map((name) => this.handle(name));
    this.readout = chart.root.querySelector(".readout");
  }

  handle(name) {
    const made = document.createElement("div");
    Object.assign(made, { className: `cursor cursor-${name}`, role: "slider", tabIndex: 0,
      ariaLabel: `Cursor ${name.toUpperCase()}`, ariaOrientation: "horizontal" });
    made.dataset.name = name.toUpperCase();
    made.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      made.setPointerCapture(event.pointerId);
    });
    made.addEventListener("pointermove", (event) => {
      if (made.hasPointerCapture(event.pointerId)) this.move(name, this.chart.timeAt(event.clientX));
    });
    // a drag from here does not zoom
    for (const kind of ["mousedown", "dblclick"]) made.addEventListener(kind, (event) => event.stopPropagation());
    made.addEventListener("keydown", (event) => this.key(name, event));
    return made;
  }

  move(name, to) {
    const { time } = this.chart;
    change({ [name]: Math.min(time.to, Math.max(time.from, to)) });
  }

  // Moves a cursor from sample to sample, by a tenth of the time, or to its ends.
  key(name, event) {
    const { time, series } = this.chart, at = state[name], tenth = (time.to - time.from) / 10;
    const times = series[0]?.at ?? [], index = nearest(times, at);
    const step = (by) => times[Math.max(0, Math.min(times.length - 1, index + by))] ?? at;
    const to = { ArrowLeft: step(-1), ArrowRight: step(1), ArrowDown: step(-1), ArrowUp: step(1),
      PageDown: at - tenth, PageUp: at + tenth, Home: time.from, End: time.to }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.move(name, to);
  }

  place() {
    const { drawn, view, time } = this.chart;
    for (const [index, name] of NAMES.entries()) {
      const handle = this.handles[index], at = state[name];
      if (!drawn || !view.isTime || at === null || at < time.from || at > time.to) {
        handle.remove();
        continue;
      }
      if (handle.parentElement !== drawn.over) drawn.over.append(handle);
      handle.style.left = `${drawn.valToPos(at / 1000, "x")}px`;
      for (const [what, value] of [["min", time.from], ["max", time.to], ["now", at], ["text", timeText(at, true)]]) {
        handle.setAttribute(`aria-value${what}`, value);
      }
    }
    this.showReadout();
  }

  showReadout() {
    const shown = this.chart.series.length && this.chart.view.isTime && NAMES.some((name) => state[name] !== null);
    this.readout.hidden = !shown;
    if (!shown) return;
    const set = NAMES.filter((name) => state[name] !== null), both = set.length === 2;
    const table = document.createElement("table");
    table.createCaption().textContent = "At the cursors";
    const head = table.createTHead().insertRow();
    const times = set.map((name) => timeText(state[name], true)), day = times[0].slice(0, 11);
    const words = ["Signal", ...set.map((name, index) =>
      `${name.toUpperCase()} ${index && times[index].startsWith(day) ? times[index].slice(11) : times[index]}`)];
    if (both) words.push(`B − A: ${durationText(state.b - state.a)}`, "Least between", "Mean", "Greatest");
    head.append(...words.map((textContent) =>
      Object.assign(document.createElement("th"), { textContent, scope: "col" })));
    const body = table.createTBody();
    for (const series of this.chart.series) {
      const row = body.insertRow(), cell = (text) => { row.insertCell().textContent = text; };
      row.append(Object.assign(document.createElement("th"), { scope: "row", textContent: this.chart.view.label(series) }));
      const values = set.map((name) => {
        const index = indexAt(series, state[name]);
        return index < 0 ? undefined : isState(series) ? stateAt(series, index) : series.mean[index];
      });
      for (const [index, value] of values.entries()) {
        cell(value === undefined ? "no samples" : isState(series) ? stateText(value, series, state[set[index]])
          : this.text(value, series));
      }
      if (!both) continue;
      const numbers = !isState(series) && values.every((value) => typeof value === "number");
      cell(numbers ? this.text(values[1] - values[0], series) : "");
      const found = isState(series) ? null : between(series, Math.min(state.a, state.b), Math.max(state.a, state.b));
      for (const name of ["min", "mean", "max"]) cell(found ? this.text(found[name], series) : "");
    }
    this.readout.replaceChildren(table);
  }

  text(value, series) {
    return `${valueText(value, series.type)} ${value === null ? "" : series.unit}`.trim();
  }
}
