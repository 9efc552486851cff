// One signal against another: a point for each pair of values, coloured by its time.

import * as api from "../api.js";
import { figureAxis, roomy } from "./axes.js";
import { timeText, valueText } from "../format.js";

const STEPS = 2000;

export class Pairs {
  isTime = false;
  axes = [];

  constructor(chart) {
    this.chart = chart;
  }

  // The values at each of some instants, as the server pairs them.
  async fetch(time, abort) {
    const names = this.chart.wanted.signals;
    if (names.length !== 2) throw new Error("One signal against another needs two signals on the chart.");
    const rows = await api.wide(names, time, Math.ceil((time.to - time.from) / STEPS), abort);
    const pairs = rows.filter(({ values }) => values.every(Number.isFinite));
    return names.map((signal, index) => ({ signal, at: pairs.map(({ at }) => at), values: pairs.map(({ values }) => values[index]) }));
  }

  draw() {
    const { series, time } = this.chart, [across, up] = series, size = 3 * devicePixelRatio;
    for (const each of series) each.colour = this.chart.colourOf(each.signal);
    const range = ({ values }) => roomy(Math.min(...values), Math.max(...values));
    const points = ({ ctx, valToPos }) => {
      ctx.save();
      for (const [index, x] of across.values.entries()) {
        ctx.fillStyle = hue(across.at[index], time);
        ctx.fillRect(valToPos(x, "x", true) - size / 2, valToPos(up.values[index], "y0", true) - size / 2, size, size);
      }
      ctx.restore();
    };
    const label = ({ signal, unit }) => `${signal}${unit ? ` (${unit})` : ""}`;
    this.chart.render([{ data: [[0, 1], [null, null]], options: {
      scales: { x: { time: false, range: () => range(across) }, y0: { range: () => range(up) } }, bands: [], padding: [10, 36, 0, 0],
      axes: [figureAxis(label(across)), figureAxis(label(up), { scale: "y0", size: 68 })],
      series: [{}, { label: up.signal, scale: "y0", show: true, points: { show: false } }],
      cursor: { drag: { x: false, y: false } }, hooks: { draw: [points] },
    } }]);
  }

  label({ signal }) {
    return signal;
  }

  current({ values, unit }) {
    const { from, to } = this.chart.time;
    const bounds = values.length ? `, ${valueText(Math.min(...values))} … ${valueText(Math.max(...values))} ${unit}` : "";
    return { text: `${values.length} pairs${bounds}`, title: `blue: ${timeText(from)}, red: ${timeText(to)}` };
  }
}

// Blue at the begin of the time, red at its end.
const hue = (at, { from, to }) => `hsl(${240 * (1 - Math.min(1, Math.max(0, (at - from) / (to - from))))} 75% 45%)`;
