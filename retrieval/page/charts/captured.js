// A capture: the rows kept around an event, at full rate. Times on the axis are seconds from the event.

import * as api from "../api.js";
import { figureAxis } from "./axes.js";
import { timeText } from "../format.js";
import { ofSamples } from "./series.js";
import { Trend } from "./trend.js";

export class Captured extends Trend {
  append = undefined; // new samples are not of the event

  get number() {
    return this.chart.wanted.mode.split("-")[1];
  }

  // The rows of an ended capture stay as they are.
  async fetch(time, abort) {
    if (this.found && this.event.tables.every(({ state }) => state === "ended")) return this.found;
    this.event = await eventOf(this.number);
    const { signals } = this.event, wanted = this.chart.wanted.signals;
    const byTable = Map.groupBy(signals.filter(({ signal }) => wanted.includes(signal)), ({ table }) => table);
    const found = await Promise.all([...byTable].map(([table, own]) =>
      api.captured(this.number, table, own.map(({ signal }) => signal), abort)));
    const made = new Map(found.flat().map((each) => [each.signal, ofSamples(each)]));
    this.found = wanted.map((name) => made.get(name)).filter(Boolean);
    return this.found;
  }

  async after(time, abort) {
    await super.after(time, abort, [{ kind: "capture", time: this.event.time, rows: null, table_name: this.event.name,
      message: [this.event.note, ...troubles(this.event)].filter(Boolean).join("; ") }]);
  }

  get zero() {
    return Date.parse(this.event.time) / 1000;
  }

  timeAxis() {
    const splits = (_, __, low, high, step) => {
      const marks = [];
      for (let number = Math.ceil((low - this.zero) / step); this.zero + number * step <= high; number++) {
        marks.push(this.zero + number * step);
      }
      return marks;
    };
    return figureAxis("seconds from the event", { space: 60, splits,
      values: (_, marks) => marks.map((mark) => String(Number((mark - this.zero).toFixed(6)))) });
  }

  timeText(at) {
    const seconds = at / 1000 - this.zero;
    return `${seconds > 0 ? "+" : ""}${seconds.toFixed(3)} s · ${timeText(at, true)}`;
  }

  address(form, wide) {
    const tables = [...new Set(this.found.map(({ table }) => table))];
    if (wide === "mean" || tables.length > 1) throw new Error(`Rows of one table are saved as they are: \`ringlog capture export ${
      this.number}\` writes all tables into one file.`);
    return api.address(`captures/${this.number}/${tables[0]}`, { format: form });
  }
}

// All charts of a capture ask for it at once.
const asked = {};
const eventOf = (number) => asked[number] ??= api.capture(number).finally(() => delete asked[number]);

// What of a capture is missing, or not there yet.
export const troubles = ({ tables }) => [...new Set(tables.map(({ state }) => state).filter((state) => state !== "ended")),
  ...tables.flatMap(({ table_name: table, lost, trouble }) =>
    [lost && `lost: ${lost}`, trouble].filter(Boolean).map((words) => `${table}: ${words}`))];
