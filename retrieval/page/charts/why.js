// Why readings are missing: the answer to a click on a gap, below the chart.

import * as api from "../api.js";
import { timeText } from "../format.js";
import { isHeld, until } from "./series.js";

const BAD = ["source lost", "never processed", "no rows from source", "source unreadable", "unfit", "writer stopped",
  "writer silent", "no call", "refused", "thinned", "damaged", "archive unreadable", "node"];

// The time without a value around an instant, within the shown time; null where the series has a value.
function gapAt(series, instant, time) {
  const has = (index) => series.n[index] > 0 || (series.mean[index] ?? null) !== null;
  const latest = until(series.at, instant);
  if (latest >= 0 && isHeld(series) && has(latest)) return null;
  let before = latest, after = latest + 1;
  while (before >= 0 && !has(before)) before--;
  while (after < series.at.length && !has(after)) after++;
  const from = series.at[before] ?? time.from, to = series.at[after] ?? time.to;
  return to - from > 1.5 * series.usual ? { from: Math.max(from, time.from), to: Math.min(to, time.to) } : null;
}

// Asks why the visible series without a value at an instant have none, and shows the answers.
export async function showWhy(chart, instant) {
  const root = chart.root.querySelector(".why");
  const gaps = chart.series.filter((each) => !each.before && !chart.isHidden(each.signal))
    .map((each) => [each.signal, gapAt(each, instant, chart.time)]).filter(([, gap]) => gap);
  root.replaceChildren();
  try {
    const answers = await Promise.all(gaps.map(([name, gap]) => api.why(name, gap)));
    // signals of one table usually have one answer
    const same = Map.groupBy(gaps.map(([name, gap], index) => ({ name, gap, spans: answers[index] })),
      ({ gap, spans }) => JSON.stringify([timeText(gap.from), timeText(gap.to), spans]));
    root.replaceChildren(...[...same.values()].flatMap((found) => answer(found.map(({ name }) => name), found[0])));
    chart.calls.worked(root);
  } catch (error) {
    chart.calls.failed(error, root);
  }
}

function answer(names, { gap, spans }) {
  const words = `${names.join(", ")} ${names.length > 1 ? "have" : "has"} no reading from ${timeText(gap.from)} to ${timeText(gap.to)}`;
  const list = document.createElement("ul");
  list.append(...spans.map((span) => {
    const item = document.createElement("li");
    const cause = Object.assign(document.createElement("b"), { textContent: span.cause });
    if (BAD.includes(span.cause)) cause.className = "bad";
    const [since, end] = [span.since, span.until].map((at) => at && timeText(Date.parse(at)));
    const when = since && end ? (since === end ? since : `${since} – ${end}`) : since ? `since ${since}` : end ? `until ${end}` : "";
    const rows = span.rows === null ? "" : `, ${span.rows} row${span.rows === 1 ? "" : "s"}`;
    item.append(cause, ` ${when}${rows}: ${span.evidence}`);
    return item;
  }));
  const head = document.createElement("p");
  head.textContent = spans.length ? `${words}:` : `${words} as drawn; every row that was due is in the log.`;
  return spans.length ? [head, list] : [head];
}
