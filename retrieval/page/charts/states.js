// Bits and texts as bars below the lines: one bar per signal, one piece per state.

import { theme } from "./axes.js";
import { valueText } from "../format.js";
import { asOf, isBroken, isNamed, isSeverity, isText, stateAt } from "./series.js";

// The severities of EPICS, in the usual colours of control rooms: [name, background, text].
const SEVERITIES = [["NO_ALARM", "#2b8a3e", "#ffffff"], ["MINOR", "#ffd43b", "#17212b"], ["MAJOR", "#c92a2a", "#ffffff"],
  ["INVALID", "#a61e9d", "#ffffff"]];
const GROUNDS = {
  light: ["#0b7285", "#5f3dc4", "#8f4a00", "#1864ab", "#862e9c", "#5c3c10", "#495057", "#9c1f4a"],
  dark: ["#3bc9db", "#b197fc", "#ffc078", "#74c0fc", "#eebefa", "#e8c39e", "#ced4da", "#faa2c1"],
};

const HEIGHT = 18, GAP = 4;

export function states(chart, bars, time) {
  const { ctx, bbox } = chart;
  const ratio = devicePixelRatio;
  const style = getComputedStyle(document.documentElement);
  const ground = style.getPropertyValue("--panel").trim(), text = style.getPropertyValue("--text").trim();
  const top = chart.height * ratio - bars.length * (HEIGHT + GAP) * ratio;
  const right = bbox.left + bbox.width;
  const xOf = (at) => Math.min(right, Math.max(bbox.left, chart.valToPos(at / 1000, "x", true)));
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, DejaVu Sans, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const [row, series] of bars.entries()) {
    const y = top + row * (HEIGHT + GAP) * ratio, height = HEIGHT * ratio;
    for (const piece of pieces({ ...series, mean: series.at.map((_, index) => stateAt(series, index)) }, time)) {
      const x = xOf(piece.from), width = Math.max(ratio, xOf(piece.to) - x);
      if (piece.value === null) continue;
      const off = piece.value === 0 || piece.value === false;
      const mixed = typeof piece.value === "number" && piece.value > 0 && piece.value < 1;
      const own = lookOf(piece.value, series);
      ctx.globalAlpha = own ? 1 : off ? 0.18 : mixed ? 0.5 : 0.85;
      ctx.fillStyle = own?.ground ?? series.colour;
      ctx.fillRect(x, y, width, height);
      ctx.globalAlpha = 1;
      const words = stateText(piece.value, series, piece.from);
      if (ctx.measureText(words).width + 8 * ratio < width) {
        ctx.fillStyle = own?.words ?? (off || mixed ? text : ground);
        ctx.fillText(words, x + 4 * ratio, y + height / 2);
      }
    }
  }
  ctx.restore();
}

// The name that a state has, or had at a time.
export const stateText = (value, series, at) =>
  asOf(series, at).states?.[typeof value === "boolean" ? Number(value) : value] ?? ((isSeverity(series) && SEVERITIES[value]?.[0]) || valueText(value, series.type));

// The colours of a severity, or of a text among those of the series; null for a bit, which has the colour of
// its line.
function lookOf(value, series) {
  const severity = SEVERITIES.find(([name], number) => value === name || (isSeverity(series) && value === number));
  if (severity) return { ground: severity[1], words: severity[2] };
  if (!isText(series) && !(isNamed(series) && series.type !== "bit")) return null;
  if (value === "changing") return { ground: "#868e96", words: "#ffffff" };
  // a named state has the colour of its position in the file; a text keeps its own while the chart exists
  const seen = series.seen ??= new Map(Object.keys(series.states ?? {}).map((state, index) => [Number(state), index]));
  if (!seen.has(value)) seen.set(value, seen.size);
  const grounds = GROUNDS[theme()] ?? GROUNDS.light;
  return { ground: grounds[seen.get(value) % grounds.length], words: theme() === "dark" ? "#0f1419" : "#ffffff" };
}

// Neighbours with the same value are one piece, unless points are missing between them; the last one gets the usual duration
// of a sample.
export function pieces(series, time) {
  const found = [];
  const steps = series.at.slice(1).map((at, index) => at - series.at[index]).sort((a, b) => a - b);
  const usual = series.width ? series.width * 1000 : 3 * (steps[steps.length >> 1] ?? 1000);
  const end = Math.min(time.to, (series.at[series.at.length - 1] ?? 0) + (series.width ? usual / 2 : usual));
  for (let index = 0; index < series.at.length; index++) {
    const value = series.mean[index];
    const from = series.width ? series.at[index] - series.width * 500 : series.at[index];
    const last = found[found.length - 1], before = series.at[index - 1];
    const gap = isBroken(series, index);
    if (last && last.value === value && !gap && asOf(series, last.from) === asOf(series, from)) continue;
    if (last) last.to = gap ? before + (series.width ? series.width * 500 : series.usual) : from;
    found.push({ from, to: end, value });
  }
  return found;
}
