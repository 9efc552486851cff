// One chart: its signals on axes by unit, drawn by uPlot.

import * as api from "./api.js";
import { histogram, spectrum } from "./analysis.js";
import { timeText, timeTicks, valueText } from "./format.js";
import { state } from "./state.js";
import { states } from "./states.js";

const COLOURS = {
  light: ["#0b7285", "#c2255c", "#5f3dc4", "#b35c00", "#2b8a3e", "#1864ab", "#862e9c", "#5c3c10", "#495057"],
  dark: ["#3bc9db", "#faa2c1", "#b197fc", "#ffc078", "#8ce99a", "#74c0fc", "#eebefa", "#e8c39e", "#ced4da"],
};
const MOST = 60_000; // samples of a spectrum or of texts

export class Chart {
  constructor(root, wanted, known, calls) {
    this.root = root;
    this.plot = root.querySelector(".plot");
    this.legend = root.querySelector(".legend");
    this.wanted = wanted;
    this.known = known;
    this.calls = calls;
    this.series = [];
    this.drawn = null;
    this.root.querySelector(".mode").value = wanted.mode;
    new ResizeObserver(() => this.resize()).observe(this.plot);
  }

  get isTime() {
    return !["histogram", "spectrum"].includes(this.wanted.mode);
  }

  get offset() {
    return Number(this.wanted.mode.match(/^compare-(\d+)$/)?.[1] ?? 0) * 1000;
  }

  title() {
    const names = this.wanted.signals;
    return names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
  }

  // Fetches what is shown and draws it. A later call ends an earlier one.
  async load(time) {
    this.running?.abort();
    this.running = new AbortController();
    const { signal } = this.running;
    this.root.classList.add("busy");
    this.root.querySelector("h2").textContent = this.title();
    try {
      const series = await this.fetch(time, signal);
      if (signal.aborted) return;
      this.series = series;
      this.time = time;
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.calls.failed(error);
    } finally {
      if (!signal.aborted) this.root.classList.remove("busy");
    }
  }

  async fetch(time, signal) {
    const of = (name) => this.known.get(name) ?? { signal: name, type: "real", unit: "" };
    const texts = this.wanted.signals.filter((name) => of(name).type.startsWith("varchar"));
    const waveforms = this.wanted.signals.filter((name) => of(name).type.endsWith("[]"));
    if (waveforms.length) this.calls.failed({ message: `${waveforms.join(", ")}: waveforms are saved, not drawn.` });
    const numbers = this.wanted.signals.filter((name) => !texts.includes(name) && !waveforms.includes(name));
    const points = Math.max(100, Math.min(4000, Math.round(this.plot.clientWidth * 1.2)));
    const asked = [];
    if (this.isTime) {
      if (numbers.length) asked.push(api.trend(numbers, time, points, signal));
      if (this.offset && numbers.length) {
        const earlier = { from: time.from - this.offset, to: time.to - this.offset };
        asked.push(api.trend(numbers, earlier, points, signal).then((found) => found.map((each) => ({
          ...each, time: each.time.map((at) => at + this.offset), before: this.offset,
        }))));
      }
      if (texts.length) asked.push(api.data(texts, time, signal).then((found) => found.map(ofSamples)));
    } else if (numbers.length) {
      asked.push(api.trend(numbers, time, MOST, signal));
    }
    const found = (await Promise.all(asked)).flat();
    return found.map((each) => ({ ...of(each.signal), ...each, at: middle(each) }));
  }

  // New samples of the live stream: {signal: [[milliseconds, value], …]}.
  append(values, time) {
    if (!this.isTime || !this.drawn) return;
    this.time = time;
    for (const series of this.series) {
      if (series.before) continue;
      for (const [at, value] of values[series.signal] ?? []) {
        const last = series.at.length ? series.at[series.at.length - 1] : -Infinity;
        if (at <= last) continue;
        const number = typeof value === "boolean" ? Number(value) : value;
        series.at.push(at);
        for (const name of ["mean", "min", "max", "last"]) series[name].push(number);
        series.n.push(number === null ? 0 : 1);
      }
      const first = series.at.findIndex((at) => at >= time.from);
      if (first > 200) for (const name of ["at", "mean", "min", "max", "last", "n"]) series[name].splice(0, first - 1);
    }
    this.draw();
  }

  draw() {
    if (this.wanted.mode === "histogram") return this.drawHistogram();
    if (this.wanted.mode === "spectrum") return this.drawSpectrum();
    const lines = this.series.filter((series) => !isState(series));
    const bars = this.series.filter(isState);
    const times = [...new Set(lines.flatMap((series) => withGaps(series).at))].sort((a, b) => a - b);
    const data = [times.length ? times.map((at) => at / 1000) : [this.time.from / 1000]];
    const colours = COLOURS[document.documentElement.dataset.theme] ?? COLOURS.light;
    const units = [...new Set(lines.map((series) => series.unit))];
    const options = this.options(colours, units, bars);
    for (const [index, series] of this.series.entries()) series.colour = colours[index % colours.length];
    for (const series of lines) {
      const gapped = withGaps(series), place = new Map(gapped.at.map((at, index) => [at, index]));
      const column = (values) => data[0].map((_, index) => {
        const found = place.get(times[index]);
        return found === undefined ? undefined : values[found];
      });
      const scale = `y${units.indexOf(series.unit)}`;
      const label = series.before ? `${series.signal}, before` : series.signal;
      const single = series.at.length < 3;
      data.push(column(gapped.mean));
      options.series.push({ label, scale, stroke: series.colour, width: series.before ? 1 : 1.6,
        dash: series.before ? [5, 4] : undefined, points: { show: single, size: 6 } });
      if (series.width > 0 && !series.before) {
        data.push(column(gapped.max), column(gapped.min));
        const at = options.series.length;
        for (const name of ["max", "min"]) {
          options.series.push({ label: `${label} ${name}`, scale, stroke: `${series.colour}55`, width: 0.6,
            points: { show: false } });
        }
        options.bands.push({ series: [at, at + 1], fill: `${series.colour}33` });
      }
    }
    if (!lines.length) {
      data.push([null]);
      options.series.push({ scale: "y0", show: false });
    }
    this.render(options, data);
    this.tell();
  }

  options(colours, units, bars) {
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--quiet").trim(), grid = style.getPropertyValue("--grid").trim();
    const { from, to } = this.time;
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 },
      font: "12px system-ui, DejaVu Sans, sans-serif" };
    const limits = units.map((unit) => this.series.filter((series) => series.unit === unit && series.limits));
    const options = {
      ...this.size(), ms: 1e-3, legend: { show: false }, bands: [], padding: [8, 8, 0, 0],
      tzDate: (seconds) => state.utc ? uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC") : new Date(seconds * 1e3),
      cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: "charts" }, focus: { prox: 24 } },
      scales: { x: { time: true, range: () => [from / 1000, to / 1000] } },
      axes: [{ ...axis, space: 76, values: (_, ticks, __, ___, step) => timeTicks(ticks, step) }], series: [{}],
      hooks: {
        setCursor: [() => this.tell()],
        setSelect: [(chart) => {
          if (chart.select.width < 4) return;
          const at = (x) => chart.posToVal(x, "x") * 1000;
          this.calls.zoom(at(chart.select.left), at(chart.select.left + chart.select.width));
          chart.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        draw: [(chart) => {
          this.drawLimits(chart, limits, units);
          if (bars.length) states(chart, bars, this.time);
        }],
      },
    };
    if (bars.length) options.padding[2] = 22 * bars.length + 4;
    for (const [index, unit] of (units.length ? units : [""]).entries()) {
      options.scales[`y${index}`] = { range: (_, low, high) => nice(low, high) };
      options.axes.push({ ...axis, scale: `y${index}`, side: index % 2 ? 1 : 3, size: 68, label: unit || undefined,
        labelFont: "12px system-ui, DejaVu Sans, sans-serif", labelSize: unit ? 18 : 0, show: units.length > 0,
        grid: { ...axis.grid, show: index === 0 },
        values: (_, ticks) => ticks.map((tick) => tickText(tick, ticks)) });
    }
    return options;
  }

  drawLimits(chart, limits, units) {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.setLineDash([6, 5]);
    ctx.lineWidth = devicePixelRatio;
    for (const [index] of units.entries()) {
      for (const series of limits[index]) {
        for (const limit of series.limits) {
          const y = chart.valToPos(limit, `y${index}`, true);
          ctx.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--bad").trim();
          ctx.globalAlpha = 0.7;
          ctx.beginPath();
          ctx.moveTo(bbox.left, y);
          ctx.lineTo(bbox.left + bbox.width, y);
          ctx.stroke();
        }
      }
    }
    ctx.restore();
  }

  drawHistogram() {
    const found = this.series.map((series) => histogram(series.mean));
    this.drawFigures(found.map(({ edges, counts }) => [edges, counts]), "samples");
  }

  drawSpectrum() {
    const found = this.series.map((series) => spectrum(series.at, series.mean));
    this.drawFigures(found.map(({ frequencies, amplitudes }) => [frequencies, amplitudes]), "amplitude", "Hz");
  }

  drawFigures(pairs, label, unit) {
    const colours = COLOURS[document.documentElement.dataset.theme] ?? COLOURS.light;
    const xs = [...new Set(pairs.flatMap(([x]) => x))].sort((a, b) => a - b);
    const options = this.options(colours, [label], []);
    const units = [...new Set(this.series.map((series) => series.unit))].join(", ");
    options.scales.x = { time: false };
    options.axes[0].values = (_, ticks) => ticks.map((tick) => tickText(tick, ticks));
    options.axes[0].label = unit ?? (units || "value");
    options.axes[0].labelSize = 18;
    options.cursor.sync = undefined;
    options.hooks.draw = [];
    options.hooks.setSelect = [];
    options.cursor.drag = { x: false, y: false };
    const data = [xs.length ? xs : [0]];
    for (const [index, [x, y]] of pairs.entries()) {
      this.series[index].colour = colours[index % colours.length];
      const place = new Map(x.map((at, each) => [at, y[each]]));
      data.push(xs.length ? xs.map((at) => place.get(at)) : [null]);
      options.series.push({ label: this.series[index].signal, scale: "y0", stroke: colours[index % colours.length],
        width: 1.4, spanGaps: true, points: { show: false },
        ...(unit ? {} : { paths: uPlot.paths.bars({ size: [1] }), fill: `${colours[index % colours.length]}66` }) });
    }
    this.render(options, data);
    this.tell();
  }

  render(options, data) {
    const empty = this.series.every((series) => !series.at.length);
    let note = this.plot.querySelector(".note");
    const shape = JSON.stringify([options.series.map((one) => [one.label, one.stroke, one.scale]), options.bands.length,
      options.padding, options.axes.map((axis) => [axis.stroke, axis.label]), state.utc, this.wanted.mode]);
    if (this.drawn && this.shape === shape && this.isTime) {
      this.drawn.batch(() => {
        this.drawn.scales.x.range = options.scales.x.range;
        this.drawn.hooks.draw = options.hooks.draw;
        this.drawn.hooks.setSelect = options.hooks.setSelect;
        this.drawn.setData(data, true);
      });
    } else {
      this.drawn?.destroy();
      this.drawn = new uPlot(options, data, this.plot);
      this.shape = shape;
    }
    note?.remove();
    if (empty) {
      note = document.createElement("p");
      note.className = "note";
      note.textContent = "No samples in this time";
      this.plot.append(note);
    }
  }

  // The legend: each signal with its value at the cursor, else its newest.
  tell() {
    const at = this.drawn && this.drawn.cursor.left >= 0 && this.isTime
      ? this.drawn.posToVal(this.drawn.cursor.left, "x") * 1000 : null;
    const items = this.series.map((series, index) => {
      const place = at === null ? series.at.length - 1 : nearest(series.at, at);
      const value = place < 0 ? undefined : series.mean[place];
      const item = this.legend.children[index]?.cloneNode(true) ?? this.item(series);
      if (item.dataset.signal !== series.signal) return this.item(series);
      item.querySelector(".swatch").style.background = series.colour ?? "currentcolor";
      const shown = item.querySelector(".value");
      const band = place >= 0 && series.n?.[place] > 1 && series.type !== "bit"
        ? ` (${valueText(series.min[place])} … ${valueText(series.max[place])})` : "";
      shown.textContent = place < 0 ? "–" : `${valueText(value, series.type)} ${series.unit}${band}`;
      shown.title = place < 0 ? "" : timeText(series.at[place], true);
      shown.classList.toggle("alarm", outside(value, series.limits));
      return item;
    });
    this.legend.replaceChildren(...items);
    this.plot.ariaLabel = `Chart of ${items.map((item) => item.textContent.replace("✕", "")).join("; ")}, from `
      + `${timeText(this.time?.from ?? 0)} to ${timeText(this.time?.to ?? 0)}`;
  }

  item(series) {
    const item = document.createElement("li");
    item.dataset.signal = series.signal;
    const swatch = Object.assign(document.createElement("span"), { className: "swatch" });
    swatch.style.background = series.colour ?? "currentcolor";
    const name = document.createElement("span");
    name.textContent = series.before ? `${series.signal} (before)` : series.signal;
    const value = Object.assign(document.createElement("span"), { className: "value" });
    const last = series.mean[series.mean.length - 1];
    value.textContent = series.at.length ? `${valueText(last, series.type)} ${series.unit}` : "–";
    value.classList.toggle("alarm", outside(last, series.limits));
    const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "✕" });
    remove.ariaLabel = `Take ${series.signal} off this chart`;
    remove.dataset.remove = series.signal;
    item.append(swatch, name, value, remove);
    return item;
  }

  size() {
    return { width: Math.max(200, this.plot.clientWidth), height: Math.max(120, this.plot.clientHeight) };
  }

  resize() {
    if (this.drawn) this.drawn.setSize(this.size());
  }

  picture() {
    return this.plot.querySelector("canvas")?.toDataURL("image/png");
  }

  end() {
    this.running?.abort();
    this.drawn?.destroy();
    this.root.remove();
  }
}

export const isState = (series) => series.type === "bit" || series.type.startsWith("varchar");

// The middle of what each point stands for.
const middle = (series) => (series.width ? series.time.map((at) => at + series.width * 500) : [...series.time]);

function ofSamples(series) {
  const values = series.samples.map(([, value]) => value);
  return { ...series, width: 0, time: series.samples.map(([at]) => at), mean: values, min: values, max: values,
    last: values, n: values.map((value) => (value === null ? 0 : 1)) };
}

// A line breaks where there are rows without a reading, and where points are missing for long.
function withGaps(series) {
  const steps = series.at.slice(1).map((at, index) => at - series.at[index]).sort((a, b) => a - b);
  const usual = Math.max(steps[Math.floor(steps.length / 2)] ?? 0, series.width * 1000);
  const made = { at: [], mean: [], min: [], max: [] };
  for (let index = 0; index < series.at.length; index++) {
    if (index && usual && series.at[index] - series.at[index - 1] > 5 * usual) {
      made.at.push(series.at[index - 1] + usual);
      for (const name of ["mean", "min", "max"]) made[name].push(null);
    }
    made.at.push(series.at[index]);
    for (const name of ["mean", "min", "max"]) made[name].push(series[name][index]);
  }
  return made;
}

const outside = (value, limits) => typeof value === "number" && limits && (value < limits[0] || value > limits[1]);

function nearest(times, at) {
  let low = 0, high = times.length - 1;
  if (high < 0) return -1;
  while (low < high) {
    const half = (low + high) >> 1;
    if (times[half] < at) low = half + 1;
    else high = half;
  }
  return low > 0 && at - times[low - 1] < times[low] - at ? low - 1 : low;
}

function nice(low, high) {
  if (low === null || low === undefined || !Number.isFinite(low)) return [0, 1];
  if (low === high) {
    const room = Math.abs(low) * 0.05 || 1;
    return [low - room, high + room];
  }
  const room = (high - low) * 0.06;
  return [low - room, high + room];
}

// As many digits as tell two marks apart; a step of 2.5 needs one more than a step of 2.
function tickText(tick, ticks) {
  if (tick === null) return "";
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(tick) || 1;
  const size = Math.max(...ticks.map(Math.abs));
  const more = step.toExponential(1).startsWith("2.5") ? 1 : 0;
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) {
    if (Math.abs(tick) < step / 1e6) return "0";
    const digits = Math.floor(Math.log10(Math.abs(tick)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9) + more;
    return tick.toExponential(Math.max(0, Math.min(10, digits)));
  }
  return tick.toFixed(Math.max(0, Math.min(10, more - Math.floor(Math.log10(step) + 1e-9))));
}
