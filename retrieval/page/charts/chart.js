// One chart: its view determines the content; this module requests, keeps and draws.

import * as api from "../api.js";
import { colourOf, theme, unseen } from "./axes.js";
import { Captured } from "./captured.js";
import { Cursors } from "./cursors.js";
import { Figures } from "./figures.js";
import { breakable, timeText } from "../format.js";
import { legend } from "./legend.js";
import { isWaveform } from "./series.js";
import { setAxis } from "../state.js";
import { Pairs } from "./pairs.js";
import { Trend } from "./trend.js";
import { Values } from "./values.js";
import { Waveform } from "./waveform.js";
import { zoneName } from "../zones.js";

const VIEWS = { trend: Trend, compare: Trend, capture: Captured, values: Values, histogram: Figures, spectrum: Figures, pairs: Pairs };

export class Chart {
  // `known` has the description of each signal; `calls` are functions of the page: failed, worked, zoom, and
  // alter, which changes the settings of a chart.
  constructor(root, wanted, known, calls) {
    this.root = root;
    this.plot = root.querySelector(".plot");
    this.wanted = wanted;
    this.known = known;
    this.calls = calls;
    this.series = [];
    this.meanwhile = null;
    this.plots = [];
    this.gutters = [0, 0]; // the widths of the axes left and right that charts above each other have in common
    this.isOfWaveforms = wanted.signals.some((name) => isWaveform(this.of(name)));
    this.view = new (this.isOfWaveforms ? Waveform : VIEWS[wanted.mode.split("-")[0]] ?? Trend)(this);
    this.cursors = new Cursors(this);
    const title = this.root.querySelector("h2");
    title.replaceChildren(...breakable(this.title()));
    title.title = this.title();
    this.watch = new ResizeObserver(() => {
      for (const plot of this.plots) plot.setSize(this.size());
      this.calls.drawn();
      this.cursors.place();
    });
    this.watch.observe(this.plot);
  }

  get drawn() {
    return this.plots[0];
  }

  of(name) {
    return this.known.get(name) ?? { signal: name, table: "", type: "real", unit: "" };
  }

  title() {
    const names = this.wanted.signals;
    return names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
  }

  // Fetches the data of the shown time and draws them. A later call ends an earlier one.
  async load(time) {
    this.running?.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    this.root.classList.add("busy");
    if (!this.time) this.note("Reading…");
    this.meanwhile = []; // samples of the live stream that arrive before the answer
    try {
      const found = await this.view.fetch(time, signal);
      if (signal.aborted) return;
      this.series = found.map((each) => ({ ...this.of(each.signal), ...each }));
      this.time = time;
      for (const [values, isFollowed] of this.meanwhile) this.take(values, time, isFollowed);
      this.meanwhile = null;
      this.draw();
      this.calls.worked(this);
      this.measure();
      await this.view.after?.(time, signal);
      if (!signal.aborted && this.view.after) this.draw();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.calls.failed(error, this);
      this.note("This time could not be read.");
    } finally {
      if (!signal.aborted) this.root.classList.remove("busy");
    }
  }

  // The time from the click to the frame that shows the chart: an entry of the browser's performance list.
  measure() {
    const { begun } = this;
    this.begun = undefined;
    if (begun === undefined) return;
    requestAnimationFrame(() => requestAnimationFrame(() =>
      performance.measure("chart shown", { start: begun, end: performance.now() })));
  }

  // New samples of the live stream: {signal: [[milliseconds, value], …]}. A chart that does not follow them, because its
  // points represent more, shows only the newest value.
  append(values, time, isFollowed) {
    if (!this.view.append) return;
    this.meanwhile?.push([values, isFollowed]);
    if (!this.series.length) return;
    if (this.take(values, time, isFollowed)) {
      this.time = time;
      this.draw();
    } else this.showValues();
  }

  // Whether the drawing changes.
  take(values, time, isFollowed) {
    for (const series of this.series) if (!series.before) series.newest = values[series.signal]?.at(-1) ?? series.newest;
    const isTaken = isFollowed || !this.view.isTime;
    if (isTaken) this.view.append?.(values, time);
    return isTaken;
  }

  draw() {
    if (!this.time) return;
    this.view.draw();
    this.showValues();
    this.cursors.place();
    const values = this.series.map((each) => `${this.view.label(each)} ${this.view.current(each).text}`);
    const left = this.view.unseen?.() ?? unseen(this.view.axes);
    this.root.querySelector(".unseen").textContent = left
      ? `${left} point${left === 1 ? "" : "s"} at or below 0, which a logarithmic axis does not have` : "";
    this.calls.drawn(this);
    this.plot.ariaLabel = `Chart of ${values.join("; ")}, from ${timeText(this.time.from)} to ${timeText(this.time.to)}`;
  }

  // Draws with uPlot, one drawing above the other: an existing one of time takes the new data if only these have changed.
  render(panels) {
    const [{ options, data }] = panels;
    const shape = JSON.stringify([options.series.map((one) => [one.label, one.stroke, one.scale, one.dash, one.kind]),
      options.padding, options.axes.map((axis) => [axis.stroke, axis.label, axis.side]), options.bands.length,
      Object.entries(options.scales).map(([name, scale]) => [name, scale.dir, scale.distr]), zoneName(), theme()]);
    if (this.drawn && this.shape === shape && this.view.isTime) {
      this.drawn.batch(() => {
        for (const [name, scale] of Object.entries(options.scales)) this.drawn.scales[name].range = scale.range;
        this.drawn.hooks.draw = options.hooks.draw;
        this.drawn.setData(data, true);
      });
    } else {
      this.clear();
      this.plots = panels.map((panel) =>
        new uPlot({ ...this.size(panels.length), legend: { show: false }, ...panel.options }, panel.data, this.plot));
      this.shape = shape;
      if (this.view.isTime) this.plot.querySelector(".u-axis").style.cursor = "ew-resize"; // gestures.js
    }
    this.note(this.series.every((each) => !(each.at ?? each.values).length) ? "No samples in this time" : "");
  }

  clear() {
    for (const plot of this.plots.splice(0)) plot.destroy();
  }

  // Changes the look of the same signals in the same view.
  isAlike(wanted) {
    const { mode, signals } = this.wanted;
    return wanted.mode === mode && JSON.stringify(wanted.signals) === JSON.stringify(signals);
  }

  isHidden(name) {
    return Boolean(this.wanted.of?.[name]?.hide);
  }

  // The colour of a signal: the chosen one, otherwise by its position among the signals of the chart, also in a
  // comparison with an earlier time.
  colourOf(name) {
    return this.wanted.of?.[name]?.colour ?? colourOf(Math.max(0, this.wanted.signals.indexOf(name)));
  }

  // --- the axes of values, by the names of their scales: fractions of the shown range, from 0 at the minimum

  axisOf(scale) {
    return this.view.axes.find((axis) => axis.scale === scale);
  }

  // The value at a fraction of a scale; fractions of a logarithmic axis are in decades.
  valueAt(scale, share) {
    const { min, max } = this.drawn.scales[scale];
    return this.axisOf(scale)?.log ? min * (max / min) ** share : min + (max - min) * share;
  }

  setRange(scale, low, high, why) {
    const axis = this.axisOf(scale);
    if (!axis || !(low < high) || !Number.isFinite(low) || !Number.isFinite(high)) return;
    this.calls.alter(this, (wanted) => setAxis(wanted, axis.key, { min: rounded(low, high - low), max: rounded(high, high - low) }), why);
  }

  scaleValues(scale, around, factor) {
    this.setRange(scale, this.valueAt(scale, around - around * factor),
      this.valueAt(scale, around + (1 - around) * factor), { later: true });
  }

  moveValues(scale, by) {
    this.setRange(scale, this.valueAt(scale, by), this.valueAt(scale, 1 + by), { later: true });
  }

  freeValues(scale) {
    const axis = this.axisOf(scale);
    if (axis) this.calls.alter(this, (wanted) => setAxis(wanted, axis.key, { min: undefined, max: undefined }));
  }

  // Shows an element in place of a drawing.
  show(element) {
    this.clear();
    if (element.parentElement !== this.plot) this.plot.append(element);
    this.note("");
  }

  note(words) {
    this.plot.querySelector(".note")?.remove();
    if (words) this.plot.append(Object.assign(document.createElement("p"), { className: "note", textContent: words }));
  }

  showValues() {
    legend(this.root.querySelector(".legend"), this);
  }

  // The instant at a position in the window.
  timeAt(clientX) {
    return this.timeOf(clientX - this.drawn.over.getBoundingClientRect().left);
  }

  // The instant at a position in the drawing.
  timeOf(left) {
    return this.drawn.posToVal(left, "x") * 1000;
  }

  size(number = this.plots.length || 1) {
    return { width: Math.max(200, this.plot.clientWidth), height: Math.max(80, Math.floor(this.plot.clientHeight / number)) };
  }

  picture() {
    const parts = [...this.plot.querySelectorAll("canvas")], all = document.createElement("canvas");
    Object.assign(all, { width: parts[0]?.width ?? 0, height: parts.reduce((sum, { height }) => sum + height, 0) });
    let top = 0;
    for (const part of parts) {
      all.getContext("2d").drawImage(part, 0, top);
      top += part.height;
    }
    return all.toDataURL("image/png");
  }

  // A file name by the rule of file_name in retrieval/plain/notes.py; a picture is not made by the server.
  fileName() {
    const [first, ...others] = this.wanted.signals;
    const moment = (at) => new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, "");
    const name = first.replaceAll(/[^\w.-]+/g, "_").slice(0, 100) + (others.length ? `_and_${others.length}_more` : "");
    return `${name}_${moment(this.time.from)}_${moment(this.time.to)}`;
  }

  // Downloads a file in a form such as csv; csv-last and csv-mean have a column for each signal.
  address(choice) {
    const [form, wide] = choice.split("-");
    if (this.view.address) return this.view.address(form, wide);
    const step = `${Math.ceil((this.time.to - this.time.from) / 1000)}ms`;
    const aligned = !wide ? {} : wide === "mean" ? { wide, step } : { wide };
    return api.address("data", { signal: this.wanted.signals, ...api.shown(this.time), ...aligned, format: form, download: "1" });
  }

  end() {
    this.running?.abort();
    this.calls.worked(this);
    this.watch.disconnect();
    this.clear();
    this.root.remove();
  }
}

// The number of digits for a range of this size.
const rounded = (value, size) => Number(value.toFixed(Math.max(0, Math.min(20, 4 - Math.floor(Math.log10(size))))));
