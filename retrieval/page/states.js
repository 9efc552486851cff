// Bits and texts as bars below the lines: one bar a signal, one piece a state.

import { valueText } from "./format.js";

const HEIGHT = 18, GAP = 4;

export function states(chart, bars, time) {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  const style = getComputedStyle(document.documentElement);
  const ground = style.getPropertyValue("--panel").trim(), text = style.getPropertyValue("--text").trim();
  const top = chart.height * ratio - bars.length * (HEIGHT + GAP) * ratio;
  const right = bbox.left + bbox.width;
  const place = (at) => Math.min(right, Math.max(bbox.left, chart.valToPos(at / 1000, "x", true)));
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, DejaVu Sans, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const [row, series] of bars.entries()) {
    const y = top + row * (HEIGHT + GAP) * ratio, height = HEIGHT * ratio;
    for (const piece of pieces(series, time)) {
      const x = place(piece.from), width = Math.max(ratio, place(piece.to) - x);
      if (piece.value === null) continue;
      const off = piece.value === 0 || piece.value === false;
      const mixed = typeof piece.value === "number" && piece.value > 0 && piece.value < 1;
      ctx.globalAlpha = off ? 0.18 : mixed ? 0.5 : 0.85;
      ctx.fillStyle = series.colour;
      ctx.fillRect(x, y, width, height);
      ctx.globalAlpha = 1;
      const words = valueText(piece.value, series.type);
      if (ctx.measureText(words).width + 8 * ratio < width) {
        ctx.fillStyle = off || mixed ? text : ground;
        ctx.fillText(words, x + 4 * ratio, y + height / 2);
      }
    }
  }
  ctx.restore();
}

// Neighbours with the same value are one piece, unless points are missing for long between them, as in withGaps;
// the last lasts as long as samples usually do.
export function pieces(series, time) {
  const found = [];
  const steps = series.at.slice(1).map((at, index) => at - series.at[index]).sort((a, b) => a - b);
  const usual = series.width ? series.width * 1000 : 3 * (steps[steps.length >> 1] ?? 1000);
  const end = Math.min(time.to, (series.at[series.at.length - 1] ?? 0) + (series.width ? usual / 2 : usual));
  for (let index = 0; index < series.at.length; index++) {
    const value = series.mean[index];
    const from = series.width ? series.at[index] - series.width * 500 : series.at[index];
    const last = found[found.length - 1], before = series.at[index - 1];
    const gap = index && series.usual && series.at[index] - before > 5 * series.usual;
    if (last && last.value === value && !gap) continue;
    if (last) last.to = gap ? before + (series.width ? series.width * 500 : series.usual) : from;
    found.push({ from, to: end, value });
  }
  return found;
}
