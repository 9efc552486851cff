// Waveforms as curves over their points: that of cursor A, or the newest, and that of cursor B beside it.

import * as api from "../api.js";
import { drawnAxes, figureAxis, shownOn, valueAxes, valueScales } from "./axes.js";
import { timeText, valueText } from "../format.js";
import { isWaveform } from "./series.js";
import { change, state } from "../state.js";

const LEAST = 0.001; // milliseconds between two rows
const FEW = 20; // rows of a request

export class Waveform {
  isTime = false;
  followsCursors = true;
  axes = [];

  constructor(chart) {
    this.chart = chart;
    const root = chart.root.querySelector(".steps");
    root.hidden = false;
    this.slider = root.querySelector("input");
    this.slider.addEventListener("input", () => change({ a: Number(this.slider.value) }));
    root.querySelector(".previous").addEventListener("click", () => this.step(-1));
    root.querySelector(".next").addEventListener("click", () => this.step(1));
    root.querySelector(".newest").addEventListener("click", () => change({ a: null }));
    this.newest = root.querySelector(".newest");
  }

  get names() {
    return this.chart.wanted.signals.filter((name) => isWaveform(this.chart.of(name)));
  }

  async fetch(time, abort) {
    const texts = this.names.filter((name) => this.chart.of(name).type.startsWith("varchar"));
    if (texts.length) throw new Error(`${texts.join(", ")}: lists of texts are saved, not drawn.`);
    const moments = [["A", state.a ?? time.to], ...(state.b === null ? [] : [["B", state.b]])];
    const found = await Promise.all(moments.map(([cursor, moment]) => api.at(this.names, moment, abort)
      .then((signals) => signals.map((each) => ({ ...each, cursor, ...read(each.samples[0]) })))));
    return found.flat();
  }

  append(values) {
    if (state.a !== null) return;
    for (const series of this.chart.series) {
      const last = values[series.signal]?.at(-1);
      if (series.cursor === "A" && last) Object.assign(series, read(last));
    }
  }

  // Goes to the reading of the first signal before or after the one shown.
  async step(direction) {
    const [name] = this.names, time = this.chart.series[0]?.time ?? state.a ?? this.chart.time.to;
    try {
      const found = await (direction < 0 ? before(name, time) : after(name, time));
      if (found) change({ a: found[0] });
      else this.chart.calls.failed({ message: `${name} has no waveform ${direction < 0 ? "before" : "after"} this.` });
    } catch (error) {
      this.chart.calls.failed(error);
    }
  }

  draw() {
    const { time, wanted } = this.chart;
    for (const each of this.chart.series) each.colour = this.chart.colourOf(each.signal);
    const series = this.chart.series.filter((each) => !this.chart.isHidden(each.signal));
    const axes = valueAxes(series, wanted), axisOf = (each) => axes.find((axis) => axis.own.includes(each));
    this.axes = axes;
    const length = Math.max(1, ...series.map((each) => each.values.length));
    const options = {
      scales: { x: { time: false }, ...valueScales(axes) }, bands: [], padding: [8, 36, 0, 0],
      axes: [figureAxis("point"), ...drawnAxes(axes, this.chart.size().width)],
      series: [{}, ...series.map((each) => ({ label: `${each.signal} ${each.cursor}`, stroke: each.colour,
        scale: axisOf(each).scale, width: 1.4,
        dash: each.cursor === "B" ? [5, 4] : undefined, points: { show: each.values.length < 3 } })),
        ...(series.length ? [] : [{ scale: "y0", show: false }])],
      cursor: { drag: { x: true, y: false } }, hooks: { setCursor: [() => this.chart.showValues()] },
    };
    const columns = series.map((each) => {
      const shown = shownOn(axisOf(each));
      return Array.from({ length }, (_, index) => index < each.values.length ? shown(each.values[index]) : undefined);
    });
    this.chart.render([{ options, data: [Array.from({ length }, (_, index) => index), ...(series.length ? columns : [[null]])] }]);
    const at = state.a ?? time.to;
    Object.assign(this.slider, { min: Math.min(time.from, at), max: Math.max(time.to, at), step: "any" });
    this.slider.value = at;
    this.slider.setAttribute("aria-valuetext", timeText(at, true));
    this.newest.ariaPressed = String(state.a === null);
  }

  label(series) {
    const cursor = state.a === null && state.b === null ? "" : ` ${series.cursor}`;
    return `${series.signal}${cursor}, ${series.time === null ? "none so early" : timeText(series.time, true)}`;
  }

  current({ values, unit, isReading }) {
    const index = this.chart.drawn?.cursor.idx;
    if (Number.isInteger(index)) return { text: `point ${index}: ${valueText(values[index])} ${unit}` };
    const there = values.filter((value) => value !== null);
    const bounds = there.length
      ? `, ${valueText(least(there))} … ${valueText(-least(there.map((value) => -value)))} ${unit}` : "";
    return { text: isReading ? `${values.length} points${bounds}` : "no reading" };
  }
}

const read = ([time, values] = [null, null]) => ({ time, isReading: values !== null,
  values: (values ?? []).map((value) => (typeof value === "boolean" ? Number(value) : value)) });
const least = (values) => values.reduce((low, value) => Math.min(low, value), Infinity);

// The latest sample with a reading before a time.
async function before(name, time) {
  for (;;) {
    const [{ samples: [found] }] = await api.at([name], time - LEAST);
    if (!found || found[1] !== null) return found;
    time = found[0];
  }
}

// The next sample with a reading.
async function after(name, time) {
  const to = Math.max(time, Date.now()) + 86400_000;
  for (;;) {
    const [{ samples }] = await api.data([`${name}.length`], { from: time + LEAST, to }, null, FEW);
    const found = samples.find(([, length]) => length !== null);
    if (found || samples.length < FEW) return found;
    time = samples.at(-1)[0];
  }
}
