// The box at the pointer: the time, and the value of each signal there.

const MOST = 14; // signals

export class Pointer {
  constructor(chart) {
    this.chart = chart;
    this.box = document.createElement("div");
    this.box.className = "pointer";
    this.box.ariaHidden = "true"; // the legend shows the values, too
  }

  show() {
    const { drawn, view } = this.chart, { left, event } = drawn?.cursor ?? {};
    // for the chart with the pointer, not for those that show the same instant
    if (!drawn || !(left >= 0) || !event) {
      this.box.remove();
      return;
    }
    const series = this.chart.series.filter((each) => !this.chart.isHidden(each.signal));
    const head = Object.assign(document.createElement("b"), { textContent: view.timeText(this.chart.timeOf(left)) });
    const list = document.createElement("div");
    for (const each of series.slice(0, MOST)) {
      const swatch = Object.assign(document.createElement("i"), { className: "swatch" });
      swatch.style.background = each.colour;
      const value = Object.assign(document.createElement("b"), { textContent: view.pointed(each) });
      list.append(swatch, Object.assign(document.createElement("span"), { textContent: view.label(each) }), value);
    }
    this.box.replaceChildren(head, list);
    for (const text of view.marksAt?.(left) ?? []) {
      this.box.append(Object.assign(document.createElement("p"), { className: "noted", textContent: text }));
    }
    if (series.length > MOST) this.box.append(`and ${series.length - MOST} more`);
    if (this.box.parentElement !== drawn.over) drawn.over.append(this.box);
    const isRight = left > drawn.over.clientWidth / 2;
    this.box.style.left = isRight ? "" : `${left + 14}px`;
    this.box.style.right = isRight ? `${drawn.over.clientWidth - left + 14}px` : "";
  }
}
