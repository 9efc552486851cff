// Signals over time: lines with their bands on axes by unit, states as bars, limits, events.

import * as api from "../api.js";
import { axesWidth, drawnAxes, shownOn, timeAxis, valueAxes, valueScales } from "./axes.js";
import { timeText, valueText } from "../format.js";
import { eventList, eventMarks, limitLines, missing } from "./marks.js";
import { Pointer } from "./pointer.js";
import {
  alarmOf, append, asOf, between, forget, indexAt, isHeld, isState, isText, lone, ofSamples, ofTrend, stateAt, withGaps, withWideGaps,
} from "./series.js";
import { setAxis } from "../state.js";
import { states, stateText } from "./states.js";
import { showWhy } from "./why.js";
import { zoneName } from "../zones.js";

// The worst of several simultaneous severities counts.

export class Trend {
  isTime = true;
  hasStatistics = true;

  constructor(chart) {
    this.chart = chart;
    this.events = [];
    this.axes = [];
    this.pointer = new Pointer(chart);
  }

  // The number of points to request.
  get points() {
    return Math.max(100, Math.min(4000, Math.round(this.chart.plot.clientWidth * 1.2)));
  }

  // Milliseconds from the time of the comparison to the shown time; 0: no comparison.
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

  // Events are fetched after the lines, which are drawn without them.
  async after(time, abort, more = []) {
    const tables = [...new Set(this.chart.wanted.signals.map((name) => this.chart.of(name).table))];
    const asked = tables.map((table) => api.events(time, table, abort));
    const marks = api.marks(this.chart.wanted.signals, time, abort).then((found) => found.map((mark) => ({ ...mark, kind: "mark",
      rows: null, table_name: mark.signals?.join(", ") ?? "all signals", message: `${mark.text} (${mark.login})` })));
    const found = await Promise.all([...asked, marks]);
    this.events = [...more, ...found.flat()].map((event) => ({ ...event, from: Date.parse(event.time),
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
    const { series, time, wanted } = this.chart;
    for (const each of series) {
      each.colour = this.chart.colourOf(each.signal);
      each.missing = each.before ? [] : missing(this.events, this.chart.of(each.signal).table);
    }
    const visible = series.filter((each) => !this.chart.isHidden(each.signal));
    const lines = visible.filter((each) => !isState(each)), bars = visible.filter(isState);
    this.axes = valueAxes(lines, wanted);
    // states alone need no more than their bars and the axis of time
    this.chart.plot.style.height = bars.length && !lines.length ? `${22 * bars.length + 70}px` : "";
    const options = this.options(lines, bars, time);
    const gapped = lines.map(withGaps);
    const times = [...new Set(gapped.flatMap(({ at }) => at))].sort((a, b) => a - b);
    const data = [times.length ? times.map((at) => at / 1000) : [time.from / 1000]];
    for (const [index, each] of lines.entries()) {
      const axis = this.axes.find(({ own }) => own.includes(each)), { scale } = axis, shown = shownOn(axis);
      const indexes = new Map(gapped[index].at.map((at, number) => [at, number]));
      const column = (values) => times.length ? withWideGaps(times.map((at) => {
        const value = values[indexes.get(at)];
        return value === undefined ? value : shown(value);
      })) : [null];
      const kind = wanted.of?.[each.signal]?.line ?? (isHeld(each) ? "steps" : "straight");
      const paths = kind === "steps" ? uPlot.paths.stepped({ align: 1 }) : kind === "points" ? () => null : undefined;
      data.push(column(gapped[index].mean));
      options.series.push({ label: each.signal, scale, kind, paths, stroke: each.colour, width: each.before ? 1 : 1.6,
        dash: each.before ? [5, 4] : undefined,
        points: { show: kind === "points", size: 5, fill: each.colour, filter: kind === "points" ? undefined
          : (plot, number) => lone(plot.data[number]) } });
      if (!(each.width > 0) || each.before) continue;
      data.push(column(gapped[index].max), column(gapped[index].min));
      const at = options.series.length;
      for (const name of ["max", "min"]) {
        options.series.push({ label: `${each.signal} ${name}`, scale, kind, paths, stroke: `${each.colour}55`, width: 0.6,
          points: { show: false } });
      }
      options.bands.push({ series: [at, at + 1], fill: `${each.colour}33` });
    }
    if (!lines.length) {
      data.push([null]);
      options.series.push({ scale: "y0", show: false });
    }
    this.chart.render([{ options, data }]);
    if (wanted.stats) for (const each of series) each.stats = isState(each) ? null : between(each, time.from, time.to);
  }

  options(lines, bars, { from, to }) {
    const { axes } = this, drawn = drawnAxes(axes, this.chart.size().width);
    if (!lines.length) drawn[0].show = false;
    // half of a time mark, if no axis has room for it; and the room of the axes of the other charts
    const padding = (side, least) => (plot) => {
      const width = axesWidth(plot, side);
      return Math.max(width ? least : 36, this.chart.gutters[side === 3 ? 0 : 1] - width);
    };
    return {
      ms: 1e-3, bands: [], series: [{}],
      padding: [10, padding(1, 8), bars.length ? 22 * bars.length + 4 : 0, padding(3, 0)],
      tzDate: (seconds) => {
        const zone = zoneName(), date = new Date(seconds * 1e3);
        return zone ? uPlot.tzDate(date, zone === "UTC" ? "Etc/UTC" : zone) : date;
      },
      cursor: {
        // along the time, or along the values if the pointer moves more up or down than across
        drag: { x: true, y: true, uni: Infinity, setScale: false }, focus: { prox: 24 },
        // the other charts show only the instant
        sync: { key: "charts", scales: ["x", null], filters: { pub: (type) => ["mousemove", "mouseleave"].includes(type) } },
      },
      scales: { x: { time: true, range: () => [from / 1000, to / 1000] }, ...valueScales(axes) },
      axes: [this.timeAxis(), ...drawn],
      hooks: {
        // uPlot keeps the click that ends a drag to itself
        ready: [({ over }) => over.addEventListener("click", (event) => showWhy(this.chart, this.chart.timeAt(event.clientX)))],
        setCursor: [() => {
          this.chart.showValues();
          if (this.isPointed) this.chart.pointed = this.chart.timeOf(this.chart.drawn.cursor.left);
          this.pointer.show();
        }],
        setSelect: [(plot) => this.zoom(plot)],
        draw: [(plot) => {
          limitLines(plot, axes);
          if (bars.length) states(plot, bars, this.chart.time);
          eventMarks(plot, this.events);
        }],
      },
    };
  }

  zoom(plot) {
    const { left, top, width, height } = plot.select;
    // the direction without a drag is selected as a whole
    const isOfTime = height >= plot.over.clientHeight - 1;
    if ((isOfTime ? width : height) < 4) return;
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    if (isOfTime) {
      const at = (x) => plot.posToVal(x, "x") * 1000;
      this.chart.calls.zoom(at(left), at(left + width));
      return;
    }
    this.chart.calls.alter(this.chart, (wanted) => {
      for (const { key, scale } of this.axes) {
        const ends = [plot.posToVal(top, scale), plot.posToVal(top + height, scale)];
        setAxis(wanted, key, { min: Math.min(...ends), max: Math.max(...ends) });
      }
    });
  }

  timeAxis() {
    return timeAxis();
  }

  // An instant as the pointer shows it.
  timeText(at) {
    return timeText(at, true);
  }

  // The texts of the marks at a position in the drawing.
  marksAt(left) {
    const xOf = (at) => this.chart.drawn.valToPos(at / 1000, "x");
    return this.events.filter(({ mark, from, to }) => mark && xOf(from) - 4 <= left && left <= xOf(to) + 4)
      .map(({ message }) => message);
  }

  label(series) {
    return series.before ? `${series.signal} (before)` : series.signal;
  }

  get isPointed() {
    return this.chart.drawn?.cursor.left >= 0;
  }

  // The index of the value at the pointer; -1: none.
  indexOf(series) {
    return indexAt(series, this.chart.timeOf(this.chart.drawn.cursor.left));
  }

  pointed(series) {
    const index = this.indexOf(series);
    if (index < 0) return "no samples";
    return isState(series) ? stateText(stateAt(series, index), series, series.at[index])
      : `${valueText(series.mean[index], series.type)} ${asOf(series, series.at[index]).unit}`.trim();
  }

  // The value at the pointer, otherwise the newest.
  current(series) {
    const index = this.isPointed ? this.indexOf(series) : series.at.length - 1, stats = this.statistics(series);
    const [at, newest] = (!this.isPointed && series.newest) || [series.at[index], series.last[index]];
    if (at === undefined) return { text: "–", stats };
    const { unit } = asOf(series, at);
    const text = this.isPointed ? this.figures(series, index, unit) : isState(series) ? stateText(newest, series, at)
      : `${valueText(newest, series.type)} ${unit}`.trim();
    return { text, title: timeText(at, true), alarm: alarmOf(series, this.isPointed ? series.mean[index] : newest), stats };
  }

  statistics(series) {
    if (!this.chart.wanted.stats || !series.stats) return "";
    const { min, mean, max, n } = series.stats, last = series.last.findLast((value) => typeof value === "number");
    const figures = [["least", min], ["mean", mean], ["greatest", max], ["last", last]];
    return [...figures.map(([name, value]) => `${name} ${valueText(value)}`), `${n} sample${n === 1 ? "" : "s"}`].join(" · ");
  }

  figures(series, index, unit = "") {
    if (isState(series)) return stateText(stateAt(series, index), series, series.at[index]);
    const band = series.n[index] > 1 && series.type !== "bit" && series.min[index] !== series.max[index]
      ? ` (${valueText(series.min[index])} … ${valueText(series.max[index])})` : "";
    return `${valueText(series.mean[index], series.type)} ${unit}${band}`.trim();
  }
}
