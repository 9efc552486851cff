// Histograms and spectra of the shown samples, one above the other for each axis of values.

import * as api from "../api.js";
import { decades, figureAxis, valueAxes } from "./axes.js";
import { valueText } from "../format.js";
import { isText } from "./series.js";

const HEIGHT = 240; // pixels of each of several drawings

export class Figures {
  isTime = false;
  axes = [];

  constructor(chart) {
    this.chart = chart;
  }

  // The axis across or upright that all drawings have, in addition to those of values.
  common() {
    const key = this.chart.wanted.mode === "spectrum" ? "frequency" : "number";
    return { key, own: this.chart.series, ...this.chart.wanted.axes?.[key] };
  }

  // What the server is asked for: signals of one axis have the same bins.
  requests() {
    const { wanted } = this.chart, { log } = this.common();
    const signals = wanted.signals.map((name) => this.chart.of(name)).filter((signal) => !isText(signal));
    return valueAxes(signals, wanted).map((axis) =>
      ({ names: axis.own.map((each) => each.signal), log: Boolean(wanted.mode === "spectrum" ? log : axis.log) }));
  }

  get isOutdated() {
    return this.asked !== JSON.stringify(this.requests());
  }

  async fetch(time, abort) {
    const requests = this.requests(), ask = api[this.chart.wanted.mode];
    this.asked = JSON.stringify(requests);
    if (!requests[0].names.length) throw new Error("A text has neither histogram nor spectrum.");
    const answers = await Promise.all(requests.map(({ names, log }) => ask(names, time, log, abort)));
    return answers.flatMap(({ edges, signals }) =>
      signals.map((each) => ({ ...each, edges, values: each.counts ?? each.amplitude })));
  }

  draw() {
    const { wanted } = this.chart, draw = wanted.mode === "spectrum" ? this.spectrum : this.histogram;
    for (const each of this.chart.series) each.colour = this.chart.colourOf(each.signal);
    const series = this.chart.series.filter((each) => !this.chart.isHidden(each.signal));
    const axes = valueAxes(series, wanted), common = this.common();
    this.axes = [...axes, common];
    this.chart.plot.style.height = axes.length > 1 ? `${HEIGHT * axes.length}px` : "";
    this.chart.render(axes.map((axis) => {
      const { data, across, up, scales, look } = draw.call(this, axis, common);
      return { data, options: {
        scales: { x: { time: false, ...scale(across.log), ...scales.x }, y0: { ...scale(up.log), ...scales.y0 } },
        bands: [], padding: [10, 36, 0, 0], cursor: { drag: { x: false, y: false } }, hooks: {},
        axes: [figureAxis(across.label, { log: across.log }), figureAxis(up.label, { log: up.log, scale: "y0", size: 68 })],
        series: [{}, ...(axis.own.length ? axis.own : [{}]).map((each) => ({ label: each.signal, scale: "y0",
          stroke: each.colour, width: 1.4, points: { show: false }, ...look(each) }))],
      } };
    }));
  }

  histogram(axis, { log }) {
    const { own } = axis, [{ edges } = { edges: [] }] = own;
    const middles = edges.slice(1).map((edge, bin) => (axis.log ? Math.sqrt(edge * edges[bin]) : (edge + edges[bin]) / 2));
    const count = (n) => (log && !n ? null : n);
    return {
      data: middles.length ? [middles, ...own.map(({ values }) => middles.map((_, bin) => count(values[bin] ?? 0)))]
        : [[1], ...(own.length ? own : [{}]).map(() => [null])],
      across: { label: axis.label || "value", log: axis.log },
      up: { label: own.some((each) => each.width) ? "means" : "samples", log },
      // counts are compared by the height of their bars
      scales: { x: { range: (_, low, high) => (edges.length ? [edges[0], edges.at(-1)] : [low, high * 2]) },
        y0: { range: (_, __, high) => (log ? [0.5, Math.max(2, high * 1.5)] : [0, high > 0 ? high * 1.06 : 1]) } },
      look: ({ colour }) => ({ paths: uPlot.paths.bars({ size: [1] }), fill: `${colour}66` }),
    };
  }

  spectrum(axis, { log }) {
    const { own } = axis, xs = [...new Set(own.flatMap(({ frequency }) => frequency))].sort((a, b) => a - b);
    const columns = own.map(({ frequency, values }) => {
      const at = new Map(frequency.map((x, index) => [x, values[index]]));
      return xs.map((x) => (axis.log && !(at.get(x) > 0) ? undefined : at.get(x)));
    });
    return {
      data: xs.length ? [xs, ...columns] : [[1], ...(own.length ? own : [{}]).map(() => [null])],
      across: { label: "Hz", log },
      up: { label: `amplitude ${axis.label}`, log: axis.log },
      scales: { x: { range: (_, low, high) => [low, high] },
        y0: { range: (_, low, high) => (axis.log ? decades(low, high) : [0, high > 0 ? high * 1.06 : 1]) } },
      look: () => ({ spanGaps: true }),
    };
  }

  // The number of values that a logarithmic axis does not have.
  unseen() {
    return this.axes.flatMap(({ log, own }) => (log ? own : [])).reduce((sum, { outside = 0 }) => sum + outside, 0);
  }

  label(series) {
    return series.signal;
  }

  current({ n, width, unit, mean, deviation, frequency, values }) {
    const text = (value) => `${valueText(value)} ${unit}`.trim();
    if (frequency) {
      const top = values.indexOf(values.reduce((high, value) => Math.max(high, value), 0));
      return { text: values.length ? `greatest ${text(values[top])} at ${valueText(frequency[top])} Hz` : "too few samples" };
    }
    if (!n) return { text: "no reading" };
    return { text: `${n} ${width ? `means of ${width} s` : "samples"}, mean ${text(mean)}, standard deviation ${text(deviation)}` };
  }
}

const scale = (log) => (log ? { distr: 3 } : {});
