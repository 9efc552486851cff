// The server's answers for a signal in the form of the charts: points at `at` (milliseconds), with mean, min,
// max, n.

export const isWaveform = (signal) => signal.type.endsWith("[]");
export const isText = (signal) => signal.type.startsWith("varchar") && !isWaveform(signal);
// The severity of an alarm as a number, by EPICS's name of the field.
export const isSeverity = (signal) => signal.signal?.endsWith(".SEVR") && ["smallint", "int", "bigint"].includes(signal.type);
// The properties of a signal at a time: its unit and named states may have differed.
export const asOf = (signal, at) => signal.was?.find((former) => at < former.until) ?? signal;
// Whole numbers whose values have names.
export const isNamed = (signal) => Boolean(signal.states) && !isWaveform(signal);
export const isState = (signal) => signal.type === "bit" || isText(signal) || isSeverity(signal) || isNamed(signal);
// The state of a point; "changing" if it has several named ones.
export const stateAt = (series, index) => isSeverity(series) ? series.max[index]
  : isNamed(series) && series.type !== "bit" && series.min[index] !== series.max[index] ? "changing" : series.mean[index];
// Whole numbers (states, counts) and numbers that the facility file declares as held hold until the next.
export const isHeld = (signal) => signal.held || ["smallint", "int", "bigint"].includes(signal.type) || isState(signal);
const HALF = 0.0005; // of a microsecond, in milliseconds
export const FIGURES = ["mean", "min", "max", "last", "n"];

// A trend's point is placed in the middle of its interval.
export function ofTrend(series) {
  const at = series.width ? series.time.map((time) => time + series.width * 500) : [...series.time];
  return { ...series, at, usual: usualStep(at, series.width) };
}

export function ofSamples(series) {
  const values = series.samples.map(([, value]) => (value === true ? 1 : value === false ? 0 : value));
  const at = series.samples.map(([time]) => time);
  return { ...series, width: 0, at, mean: values, min: [...values], max: [...values], last: [...values],
    n: values.map((value) => (value === null ? 0 : 1)), usual: usualStep(at, 0) };
}

export function append(series, samples) {
  for (const [at, value] of samples) {
    if (at <= (series.at.at(-1) ?? -Infinity)) continue;
    const number = typeof value === "boolean" ? Number(value) : value;
    series.at.push(at);
    for (const name of ["mean", "min", "max", "last"]) series[name].push(number);
    series.n.push(number === null ? 0 : 1);
  }
  series.usual ||= usualStep(series.at, series.width);
}

// Removes the points before an instant, except the last of them.
export function forget(series, before) {
  const first = series.at.findIndex((at) => at >= before);
  if (first > 200) for (const name of ["at", ...FIGURES]) series[name].splice(0, first - 1);
}

// The usual time between points, in milliseconds; 0 when there are too few.
function usualStep(at, width) {
  const steps = at.slice(1).map((each, index) => each - at[index]).sort((a, b) => a - b);
  return Math.max(steps[steps.length >> 1] ?? 0, width * 1000);
}

// Whether a point does not continue the one before: points are missing for long, unless the value is held, or an event says
// that readings are missing.
export function isBroken({ at, usual, held, missing }, index) {
  const step = index && usual ? at[index] - at[index - 1] : 0;
  return (!held && step > 5 * usual)
    || (step > 1.5 * usual && Boolean(missing?.some(({ from, to }) => from < at[index] && at[index - 1] < to)));
}

// Interrupts a line where rows have no reading, and where it is broken.
export function withGaps(series) {
  const { at, mean, min, max, usual } = series, made = { at: [], mean: [], min: [], max: [] };
  for (let index = 0; index < at.length; index++) {
    if (isBroken(series, index)) {
      made.at.push(at[index - 1] + usual);
      for (const name of ["mean", "min", "max"]) made[name].push(null);
    }
    made.at.push(at[index]);
    made.mean.push(mean[index]);
    made.min.push(min[index]);
    made.max.push(max[index]);
  }
  return made;
}

// For values on the times of several series: times of other series (undefined) next to a null become null
// too, because a line breaks between the neighbours of a null.
export function withWideGaps(values) {
  const made = [...values];
  for (const [first, step] of [[0, 1], [values.length - 1, -1]]) {
    for (let index = first + step; index >= 0 && index < made.length; index += step) {
      if (made[index] === undefined && made[index - step] === null) made[index] = null;
    }
  }
  return made;
}

// The indexes of single values, without a neighbour of the same series: no line leads there.
export function lone(values) {
  const own = [...values.keys()].filter((index) => values[index] !== undefined);
  const isNone = (index) => index === undefined || values[index] === null;
  return own.filter((index, at) => !isNone(index) && isNone(own[at - 1]) && isNone(own[at + 1]));
}

// The index of the last time that is not after an instant; -1 if all are.
export function until(times, instant) {
  let low = 0, high = times.length;
  while (low < high) {
    const half = (low + high) >> 1;
    if (times[half] <= instant) low = half + 1;
    else high = half;
  }
  return low - 1;
}

export function nearest(times, instant) {
  const index = until(times, instant);
  if (index < 0) return times.length ? 0 : -1;
  return index + 1 < times.length && times[index + 1] - instant < instant - times[index] ? index + 1 : index;
}

// The index of the point for an instant: the latest before it for a held value, otherwise the nearest; -1 if missing.
export function indexAt(series, instant) {
  const index = isHeld(series) ? until(series.at, instant) : nearest(series.at, instant);
  const far = index < 0 ? Infinity : Math.abs(series.at[index] - instant);
  return series.usual && !series.held && far > 5 * series.usual ? -1 : index;
}

// Minimum, maximum and mean from one instant to another; null without points.
export function between(series, from, to) {
  let n = 0, sum = 0, min = Infinity, max = -Infinity;
  for (let index = until(series.at, from - HALF) + 1; index < series.at.length && series.at[index] <= to; index++) {
    if (!series.n[index] || typeof series.mean[index] !== "number") continue;
    n += series.n[index];
    sum += series.n[index] * series.mean[index];
    min = Math.min(min, series.min[index]);
    max = Math.max(max, series.max[index]);
  }
  return n ? { n, min, max, mean: sum / n } : null;
}

// The class of a value outside the limits: with two levels of limits "warn" between them.
export const alarmOf = (series, value) => outside(value, series.alarm_limits ?? series.limits) ? "alarm"
  : outside(value, series.limits) ? "warn" : "";

const outside = (value, limits) =>
  typeof value === "number" && Boolean(limits) && (value < (limits[0] ?? -Infinity) || value > (limits[1] ?? Infinity));
