// Moving and scaling the time of a chart by wheel, mouse and fingers.

import { shownTime } from "./state.js";
import { back, remember, setTime } from "./time.js";

export function gestures(chart) {
  const { plot } = chart;
  const held = new Map(); // pointers that move or scale, and where they are
  const isOfTime = () => chart.view.isTime && chart.drawn;
  const width = () => chart.drawn.over.clientWidth;

  function move(pixels) {
    const { from, to } = shownTime(), by = (pixels / width()) * (to - from);
    setTime(from - by, to - by, { later: true });
  }

  function scaleAround(clientX, factor) {
    const { from, to } = shownTime(), at = Math.min(to, Math.max(from, chart.timeAt(clientX)));
    setTime(at - (at - from) * factor, at + (to - at) * factor, { later: true });
  }

  plot.addEventListener("wheel", (event) => {
    if (!isOfTime()) return;
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const list = plot.closest("#charts");
    // where the charts scroll the wheel is for that
    if (!sideways && !event.ctrlKey && list.scrollHeight > list.clientHeight) return;
    event.preventDefault();
    if (sideways) move(-(event.deltaX || event.deltaY));
    else scaleAround(event.clientX, event.deltaY > 0 ? 1.25 : 0.8);
  }, { passive: false });

  // fingers move and scale; so does the mouse with Shift, or on the axis of time
  plot.addEventListener("pointerdown", (event) => {
    if (!isOfTime() || event.target.closest(".cursor")) return;
    const onAxis = event.target.closest(".u-axis") === plot.querySelector(".u-axis");
    if (event.pointerType === "mouse" && !event.shiftKey && !onAxis) return;
    if (!held.size) remember();
    held.set(event.pointerId, event.clientX);
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    if (!held.has(event.pointerId)) return;
    const was = held.get(event.pointerId), others = [...held].filter(([id]) => id !== event.pointerId);
    held.set(event.pointerId, event.clientX);
    if (!others.length) move(event.clientX - was);
    else {
      const [[, other]] = others, distance = Math.abs(event.clientX - other);
      if (distance > 10) scaleAround(other, Math.abs(was - other) / distance || 1);
    }
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    plot.addEventListener(kind, (event) => held.delete(event.pointerId));
  }
  // what moves the time is no zoom of uPlot's
  plot.addEventListener("mousedown", (event) => held.size && event.stopPropagation(), { capture: true });
  plot.addEventListener("dblclick", () => isOfTime() && back());
}
