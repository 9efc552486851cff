// Common parts of all charts' axes: colours of the theme, ranges, marks.

import { timeTicks } from "../format.js";

const COLOURS = {
  light: ["#0b7285", "#c2255c", "#5f3dc4", "#b35c00", "#2b8a3e", "#0000ff", "#443311", "#cc00aa", "#ee0022", "#441144"],
  dark: ["#3bc9db", "#faa2c1", "#b197fc", "#ffc078", "#8ce99a", "#ff5500", "#ddee11", "#ff00ff", "#00ff00", "#ff44aa"],
};
const FONT = "12px system-ui, DejaVu Sans, sans-serif";

export const theme = () => document.documentElement.dataset.theme;
export const colourOf = (index) => (COLOURS[theme()] ?? COLOURS.light)[index % COLOURS.light.length];
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function axis(more) {
  const grid = { stroke: colour("grid"), width: 1 };
  return { stroke: colour("quiet"), grid, ticks: grid, font: FONT, labelFont: FONT, ...more };
}

export const timeAxis = () =>
  axis({ space: 76, values: (_, ticks, __, ___, step) => timeTicks(ticks, step) });

export const figureAxis = (label, { log, ...more } = {}) =>
  axis({ values: (_, ticks) => ticks.map((tick) => tickText(tick, ticks)), label: label || undefined,
    labelSize: label ? 18 : 0, ...(log ? LOG : {}), ...more });

// The axes of values of a chart: {key, scale, label, own, side, min, max, invert, log}. Signals of one unit share
// one, unless a signal has its own; without a choice of the user they are placed left and right in turn.
export function valueAxes(series, wanted = {}) {
  const keys = [...new Set(series.map((each) => axisKey(each, wanted)))];
  return (keys.length ? keys : [""]).map((key, index) => {
    const own = series.filter((each) => axisKey(each, wanted) === key);
    const signals = new Set(own.map((each) => each.signal));
    const isOfOne = wanted.of?.[key]?.own && own.length > 0;
    return { key, scale: `y${index}`, own, colour: signals.size === 1 ? own[0].colour : null,
      label: isOfOne ? `${key}${own[0].unit ? ` (${own[0].unit})` : ""}` : key, side: index % 2 ? "right" : "left",
      ...wanted.axes?.[key] };
  });
}

export const axisKey = (series, wanted) => (wanted.of?.[series.signal]?.own ? series.signal : series.unit);

// The axes for uPlot, in the colour of the line if there is only one.
export function drawnAxes(axes, width) {
  return axes.map(({ scale, label, side, log, colour: own }, index) =>
    figureAxis(label, { log, scale, side: side === "right" ? 1 : 3, size: width < 500 ? fitting : 68,
      grid: { stroke: colour("grid"), width: 1, show: index === 0 },
      stroke: axes.length > 1 && own ? own : colour("quiet") }));
}

// On a narrow screen an axis is as wide as its marks; uPlot calls this again with the result.
function fitting(plot, marks, index, again) {
  return again > 1 ? plot.axes[index]._size : 20 + 7 * Math.max(2, ...(marks ?? []).map((mark) => mark.length));
}

export const valueScales = (axes) =>
  Object.fromEntries(axes.map(({ scale, min, max, invert, log }) => [scale, {
    ...(log ? { distr: 3 } : {}), dir: invert ? -1 : 1,
    range: (_, low, high) => chosen(log ? decades(low, high) : roomy(low, high), min, max, log) }]));

// The range chosen by the user, one end or both; an invalid range is ignored.
function chosen([low, high], min, max, log) {
  const from = min ?? low, to = max ?? high;
  if (log && !(from > 0)) return [low, high];
  if (from < to) return [from, to];
  const room = Math.abs(from) * 0.05 || 1;
  return min === undefined ? [to - room, to] : [from, from + room];
}

// The values for an axis: a logarithmic one has none at or below 0.
export const shownOn = ({ log }) => (value) => (log && !(value > 0) ? null : value);

// The number of values that logarithmic axes do not have.
export const unseen = (axes) => axes.flatMap(({ log, own }) => (log ? own : [])).flatMap((each) => each.mean ?? each.values)
  .filter((value) => typeof value === "number" && value <= 0).length;

// The width of the axes at a side of a drawing, in pixels.
export const axesWidth = (plot, side) => (plot.axes ?? []).filter((each) => each.show && each.side === side)
  .reduce((sum, each) => sum + (each._size ?? 0) + (each.label == null ? 0 : each.labelSize), 0);

export function roomy(low, high) {
  if (low === null || low === undefined || !Number.isFinite(low)) return [0, 1];
  if (low === high) {
    const room = Math.abs(low) * 0.05 || 1;
    return [low - room, high + room];
  }
  const room = (high - low) * 0.06;
  return [low - room, high + room];
}

export function decades(low, high) {
  if (!(low > 0) || !Number.isFinite(high)) return [0.1, 10];
  const room = Math.max((high / low) ** 0.04, 1.02);
  return [low / room, high * room];
}

// Marks of a logarithmic axis: powers of ten, fractions of them if there are few, even steps within one
// decade.
function powers(low, high) {
  const span = Math.log10(high / low), first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  let marks = [];
  if (span < 0.7) {
    const unit = 10 ** Math.floor(Math.log10((high - low) / 4));
    const step = unit * [1, 2, 5, 10].find((each) => (high - low) / (unit * each) <= 8);
    for (let tick = Math.ceil(low / step); tick * step <= high; tick++) marks.push(tick * step);
  } else {
    const stride = Math.ceil(span / 8), parts = span < 2.5 ? [1, 2, 5] : [1];
    for (let power = first; power <= last; power++) {
      if (power % stride === 0) marks.push(...parts.map((part) => part * 10 ** power));
    }
  }
  return marks.filter((mark) => mark >= low && mark <= high);
}

const LOG = { splits: (_, __, low, high) => powers(low, high), filter: (_, ticks) => ticks,
  values: (_, ticks) => ticks.map(powerText) };

function powerText(tick) {
  return tick >= 1e5 || tick < 1e-3 ? tick.toExponential(0) : String(Number(tick.toPrecision(6)));
}

// As many digits as neighbouring marks need to differ; a step of 2.5 needs one more than a step of 2.
function tickText(tick, ticks) {
  if (tick === null) return "";
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(tick) || 1;
  const size = Math.max(...ticks.map(Math.abs));
  const more = step.toExponential(1).startsWith("2.5") ? 1 : 0;
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) {
    if (Math.abs(tick) < step / 1e6) return "0";
    const digits = Math.floor(Math.log10(Math.abs(tick)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9) + more;
    return tick.toExponential(Math.max(0, Math.min(10, digits))).replace(/\.?0+e/, "e");
  }
  return tick.toFixed(Math.max(0, Math.min(10, more - Math.floor(Math.log10(step) + 1e-9))));
}
