// The points of a trend as a table, also for screen readers.

import { timeText, valueText } from "../format.js";
import { Trend } from "./trend.js";

const POINTS = 200;

export class Values extends Trend {
  points = POINTS;

  constructor(chart) {
    super(chart);
    const table = document.createElement("table");
    table.createCaption().textContent = "Means of the time around each point, with least and greatest value";
    this.head = table.createTHead();
    this.body = table.createTBody();
    this.region = document.createElement("div");
    Object.assign(this.region, { className: "scroll values", tabIndex: 0, role: "group", ariaLabel: "Values" });
    this.region.append(table);
  }

  draw() {
    const { series } = this.chart;
    for (const each of series) each.colour = this.chart.colourOf(each.signal);
    const head = document.createElement("tr");
    head.append(heading("Time"), ...series.map((each) =>
      heading(`${this.label(each)}${each.unit ? ` (${each.unit})` : ""}`, "col", "number")));
    this.head.replaceChildren(head);
    const rows = new Map();
    for (const [column, each] of series.entries()) {
      for (const [index, at] of each.at.entries()) {
        if (!rows.has(at)) rows.set(at, []);
        rows.get(at)[column] = index;
      }
    }
    const times = [...rows.keys()].sort((a, b) => a - b).slice(-5 * POINTS);
    this.body.replaceChildren(...times.map((at) => {
      const row = document.createElement("tr");
      row.append(heading(timeText(at, true), "row"), ...series.map((each, column) => {
        const cell = document.createElement("td"), index = rows.get(at)[column];
        cell.className = "number";
        cell.textContent = index === undefined ? "" : this.figures(each, index);
        return cell;
      }));
      return row;
    }));
    this.chart.show(this.region);
    if (!times.length) this.chart.note("No samples in this time");
  }
}

function heading(words, scope = "col", className = "") {
  return Object.assign(document.createElement("th"), { textContent: words, scope, className });
}
