// What all charts' axes have in common: colours of the theme, ranges, marks.

import { timeTicks } from "./format.js";

const COLOURS = {
  light: ["#0b7285", "#c2255c", "#5f3dc4", "#b35c00", "#2b8a3e", "#1864ab", "#862e9c", "#5c3c10", "#495057"],
  dark: ["#3bc9db", "#faa2c1", "#b197fc", "#ffc078", "#8ce99a", "#74c0fc", "#eebefa", "#e8c39e", "#ced4da"],
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

export const figureAxis = (label, more = {}) =>
  axis({ values: (_, ticks) => ticks.map((tick) => tickText(tick, ticks)), label: label || undefined,
    labelSize: label ? 18 : 0, ...more });

// An axis for each unit, left and right in turn, in the colour of its line where it has only one.
export function unitAxes(units, series, width) {
  return units.map((unit, index) => {
    const own = series.filter((each) => each.unit === unit);
    return figureAxis(unit, { scale: `y${index}`, side: index % 2 ? 1 : 3, size: width < 500 ? fitting : 68,
      grid: { stroke: colour("grid"), width: 1, show: index === 0 },
      stroke: units.length > 1 && own.length === 1 ? own[0].colour : colour("quiet") });
  });
}

// On a narrow screen an axis is as wide as its marks; uPlot asks again with what came of it.
function fitting(plot, marks, index, again) {
  return again > 1 ? plot.axes[index]._size : 20 + 7 * Math.max(2, ...(marks ?? []).map((mark) => mark.length));
}

export const unitScales = (units) =>
  Object.fromEntries(units.map((_, index) => [`y${index}`, { range: (__, low, high) => roomy(low, high) }]));

function roomy(low, high) {
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
