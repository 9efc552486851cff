// Signals over time: lines with their bands on axes by unit, states as bars, limits, what happened.

import * as api from "./api.js";
import { colourOf, shownOn, timeAxis, unitAxes, unitScales } from "./axes.js";
import { timeText, valueText } from "./format.js";
import { eventList, eventMarks, limitLines } from "./marks.js";
import {
  append, forget, isState, isText, lone, nearest, ofSamples, ofTrend, outside, withGaps, withWideGaps,
} from "./series.js";
import { state } from "./state.js";
import { states } from "./states.js";

export class Trend {
  isTime = true;
  canBeLog = true;

  constructor(chart) {
    this.chart = chart;
    this.events = [];
  }

  // How many points are asked for.
  get points() {
    return Math.max(100, Math.min(4000, Math.round(this.chart.plot.clientWidth * 1.2)));
  }

  // Milliseconds that the other time lies before the one shown; 0 is none.
  get offset() {
    return Number(this.chart.wanted.mode.match(/^compare-(\d+(?:\.\d+)?)$/)?.[1] ?? 0) * 1000;
  }

  async fetch(time, abort) {
    const asked = [this.ask(time, abort)];
    if (this.offset) {
      const earlier = { from: time.from - this.offset, to: time.to - this.offset };
      asked.push(this.ask(earlier, abort).then((found) =>
        found.map((each) => ({ ...each, at: each.at.map((at) => at + this.offset), before: this.offset }))));
    }
    return (await Promise.all(asked)).flat();
  }

  async ask(time, abort) {
    const names = this.chart.wanted.signals;
    const texts = names.filter((name) => isText(this.chart.of(name)));
    const numbers = names.filter((name) => !texts.includes(name));
    const found = await Promise.all([
      numbers.length ? api.trend(numbers, time, this.points, abort) : [],
      texts.length ? api.data(texts, time, abort) : [],
    ]);
    const made = new Map([...found[0].map(ofTrend), ...found[1].map(ofSamples)].map((each) => [each.signal, each]));
    return names.map((name) => made.get(name));
  }

  // What happened meanwhile comes after the lines, which wait for nothing.
  async after(time, abort) {
    const tables = [...new Set(this.chart.wanted.signals.map((name) => this.chart.of(name).table))];
    const found = await Promise.all(tables.map((table) => api.events(time, table, abort)));
    this.events = found.flat().map((event) => ({ ...event, from: Date.parse(event.time),
      to: Date.parse(event.until ?? event.time) })).sort((a, b) => a.from - b.from);
    this.chart.root.querySelector(".happened").replaceChildren(...eventList(this.events));
  }

  append(values, time) {
    for (const series of this.chart.series) {
      if (series.before) continue;
      append(series, values[series.signal] ?? []);
      forget(series, time.from);
    }
  }

  draw() {
    const { series, time } = this.chart;
    for (const [index, each] of series.entries()) each.colour = colourOf(index);
    const lines = series.filter((each) => !isState(each)), bars = series.filter(isState);
    const units = [...new Set(lines.map((each) => each.unit))];
    const options = this.options(units, lines, bars, time);
    const gapped = lines.map(withGaps);
    const times = [...new Set(gapped.flatMap(({ at }) => at))].sort((a, b) => a - b);
    const data = [times.length ? times.map((at) => at / 1000) : [time.from / 1000]];
    for (const [index, each] of lines.entries()) {
      const place = new Map(gapped[index].at.map((at, number) => [at, number]));
      const shown = shownOn(this.chart.wanted.log);
      const column = (values) => times.length ? withWideGaps(times.map((at) => {
        const value = values[place.get(at)];
        return value === undefined ? value : shown(value);
      })) : [null];
      const scale = `y${units.indexOf(each.unit)}`;
      data.push(column(gapped[index].mean));
      options.series.push({ label: each.signal, scale, stroke: each.colour, width: each.before ? 1 : 1.6,
        dash: each.before ? [5, 4] : undefined,
        points: { show: false, size: 5, fill: each.colour, filter: (plot, number) => lone(plot.data[number]) } });
      if (!(each.width > 0) || each.before) continue;
      data.push(column(gapped[index].max), column(gapped[index].min));
      const at = options.series.length;
      for (const name of ["max", "min"]) {
        options.series.push({ label: `${each.signal} ${name}`, scale, stroke: `${each.colour}55`, width: 0.6,
          points: { show: false } });
      }
      options.bands.push({ series: [at, at + 1], fill: `${each.colour}33` });
    }
    if (!lines.length) {
      data.push([null]);
      options.series.push({ scale: "y0", show: false });
    }
    this.chart.render(options, data);
  }

  options(units, lines, bars, { from, to }) {
    const shown = units.length ? units : [""];
    const { log } = this.chart.wanted;
    const axes = unitAxes(shown, lines, this.chart.size().width, log);
    if (!units.length) axes[0].show = false;
    return {
      ms: 1e-3, bands: [], series: [{}],
      // half a mark of the time, where no axis has room for it
      padding: [10, units.length > 1 ? 8 : 36, bars.length ? 22 * bars.length + 4 : 0, units.length ? 0 : 36],
      tzDate: (seconds) =>
        state.utc ? uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC") : new Date(seconds * 1e3),
      cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: "charts" }, focus: { prox: 24 } },
      scales: { x: { time: true, range: () => [from / 1000, to / 1000] }, ...unitScales(shown, log) },
      axes: [timeAxis(), ...axes],
      hooks: {
        setCursor: [() => this.chart.showValues()],
        setSelect: [(plot) => {
          if (plot.select.width < 4) return;
          const at = (x) => plot.posToVal(x, "x") * 1000;
          this.chart.calls.zoom(at(plot.select.left), at(plot.select.left + plot.select.width));
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        draw: [(plot) => {
          limitLines(plot, lines, units);
          if (bars.length) states(plot, bars, this.chart.time);
          eventMarks(plot, this.events);
        }],
      },
    };
  }

  label(series) {
    return series.before ? `${series.signal} (before)` : series.signal;
  }

  // The value at the pointer, else the newest.
  current(series) {
    const { drawn } = this.chart, pointed = drawn && drawn.cursor.left >= 0;
    const at = pointed ? drawn.posToVal(drawn.cursor.left, "x") * 1000 : Infinity;
    const place = nearest(series.at, at);
    if (place < 0) return { text: "–" };
    return { text: this.figures(series, place, series.unit), title: timeText(series.at[place], true),
      alarm: outside(series.mean[place], series.limits) };
  }

  figures(series, place, unit = "") {
    const band = series.n[place] > 1 && series.type !== "bit"
      ? ` (${valueText(series.min[place])} … ${valueText(series.max[place])})` : "";
    return `${valueText(series.mean[place], series.type)} ${unit}${band}`.trim();
  }
}
