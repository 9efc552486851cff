// Moves and scales a chart by wheel, mouse and fingers: its time, and each axis of values.

import { shownTime, step } from "../state.js";
import { back, setTime } from "../time.js";

const ONE_GO = 700; // milliseconds: turns of the wheel within this time are one step

export function gestures(chart) {
  const { plot } = chart;
  const held = new Map(); // pointers that move or scale, with their positions
  let turned = 0, pulled = null; // the moved axis of values: its scale, and the last position of the pointer
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

  // The scale of values to whose axis an element belongs, or undefined.
  function scaleAt(element) {
    const axis = element.closest(".u-axis");
    const scale = axis && chart.drawn?.axes.find((each) => each._el === axis)?.scale;
    return scale === "x" ? undefined : scale ?? undefined;
  }

  // The position in the window as a fraction of the axis of values, from 0 at its minimum to 1 at its
  // maximum.
  function share(scale, clientY) {
    const box = chart.drawn.over.getBoundingClientRect(), part = 1 - (clientY - box.top) / box.height;
    return chart.drawn.scales[scale].dir === -1 ? 1 - part : part;
  }

  plot.addEventListener("wheel", (event) => {
    const scale = chart.view.isTime && scaleAt(event.target);
    const began = event.timeStamp - turned > ONE_GO;
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    if (scale) {
      event.preventDefault();
      turned = event.timeStamp;
      if (began) step();
      chart.scaleValues(scale, share(scale, event.clientY), factor);
      return;
    }
    if (!isOfTime()) return;
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const list = plot.closest("#charts");
    // if the charts scroll, the wheel scrolls them
    if (!sideways && !event.ctrlKey && list.scrollHeight > list.clientHeight) return;
    event.preventDefault();
    turned = event.timeStamp;
    if (began) step();
    if (sideways) move(-(event.deltaX || event.deltaY));
    else scaleAround(event.clientX, factor);
  }, { passive: false });

  // fingers move and scale; so does the mouse with Shift, or on an axis
  plot.addEventListener("pointerdown", (event) => {
    if (!isOfTime() || event.target.closest(".cursor")) return;
    const scale = scaleAt(event.target);
    if (scale) {
      pulled = { scale, at: share(scale, event.clientY), moved: false };
      return;
    }
    const onAxis = event.target.closest(".u-axis");
    if (event.pointerType === "mouse" && !event.shiftKey && !onAxis) return;
    if (!held.size) step();
    held.set(event.pointerId, event.clientX);
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    if (pulled) {
      const at = share(pulled.scale, event.clientY);
      if (at === pulled.at) return;
      if (!pulled.moved) {
        step();
        plot.setPointerCapture(event.pointerId);
      }
      chart.moveValues(pulled.scale, pulled.at - at);
      Object.assign(pulled, { at, moved: true });
      return;
    }
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
    plot.addEventListener(kind, (event) => {
      pulled = null;
      held.delete(event.pointerId);
    });
  }
  // a gesture that moves the time must not zoom in uPlot
  plot.addEventListener("mousedown", (event) => (held.size || pulled) && event.stopPropagation(), { capture: true });
  plot.addEventListener("dblclick", (event) => {
    const scale = chart.view.isTime && scaleAt(event.target);
    if (scale) chart.freeValues(scale);
    else if (isOfTime()) back();
  });
}
