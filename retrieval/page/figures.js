// Histogram and spectrum of the shown samples.

import * as api from "./api.js";
import { histogram, spectrum } from "./analysis.js";
import { figureAxis } from "./axes.js";
import { valueText } from "./format.js";
import { isState, isText, ofTrend } from "./series.js";

const MOST = 60_000; // samples

export class Figures {
  isTime = false;

  constructor(chart) {
    this.chart = chart;
  }

  async fetch(time, abort) {
    const names = this.chart.wanted.signals.filter((name) => !isText(this.chart.of(name)));
    if (!names.length) throw new Error("A text has neither histogram nor spectrum.");
    return (await api.trend(names, time, MOST, abort)).map(ofTrend);
  }

  draw() {
    const { wanted } = this.chart, spectral = wanted.mode === "spectrum";
    for (const each of this.chart.series) each.colour = this.chart.colourOf(each.signal);
    const series = this.chart.series.filter((each) => !this.chart.isHidden(each.signal));
    this.found = new Map(series.map((each) => [each.signal, spectral ? spectrum(each.at, each.mean) : histogram(each.mean)]));
    const found = [...this.found.values()];
    const xs = [...new Set(found.flatMap(({ x }) => x))].sort((a, b) => a - b);
    const units = [...new Set(series.filter((each) => !isState(each)).map((each) => each.unit))].join(", ");
    const [across, up] = spectral ? ["Hz", `amplitude ${units}`]
      : [units || "value", series.some((each) => each.width) ? "means" : "samples"];
    // bars are as wide as the bins
    const bin = spectral ? 0 : Math.max(0, ...found.map(({ x }) => (x.length > 1 ? x[1] - x[0] : 0)));
    const options = {
      // counts and amplitudes are compared by the height of their bars and lines
      scales: { x: { time: false, range: (_, low, high) => [low - bin / 2, high + bin / 2] },
        y0: { range: (_, __, high) => [0, high > 0 ? high * 1.06 : 1] } }, bands: [], padding: [8, 8, 0, 0], series: [{}],
      axes: [figureAxis(across), figureAxis(up, { scale: "y0", size: 68 })],
      cursor: { drag: { x: false, y: false } }, hooks: {},
    };
    const data = [xs.length ? xs : [0]];
    for (const [index, { x, y }] of found.entries()) {
      const place = new Map(x.map((at, each) => [at, y[each]]));
      data.push(xs.length ? xs.map((at) => place.get(at)) : [null]);
      options.series.push({ label: series[index].signal, scale: "y0", stroke: series[index].colour, width: 1.4,
        spanGaps: true, points: { show: false },
        ...(spectral ? {} : { paths: uPlot.paths.bars({ size: [1] }), fill: `${series[index].colour}66` }) });
    }
    this.chart.render(options, data);
  }

  label(series) {
    return series.signal;
  }

  current(series) {
    const text = (value) => `${valueText(value)} ${series.unit}`.trim();
    if (this.chart.wanted.mode === "spectrum") {
      const { x, y } = this.found.get(series.signal) ?? { x: [], y: [] };
      const top = y.indexOf(y.reduce((high, value) => Math.max(high, value), 0));
      return { text: x.length ? `greatest ${text(y[top])} at ${valueText(x[top])} Hz` : "too few samples" };
    }
    const values = series.mean.filter((value) => Number.isFinite(value));
    if (!values.length) return { text: "no reading" };
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
    const what = series.width ? `means of ${series.width} s` : "samples";
    return { text: `${values.length} ${what}, mean ${text(mean)}, standard deviation ${text(deviation)}` };
  }
}
