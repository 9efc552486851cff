// The list below a chart: each signal, its colour, and its current value as the view shows it.

export function legend(list, series, view) {
  while (list.children.length > series.length) list.lastElementChild.remove();
  for (const [index, each] of series.entries()) {
    let item = list.children[index];
    if (item?.dataset.signal !== each.signal) {
      const made = itemOf(each.signal);
      if (item) item.replaceWith(made);
      else list.append(made);
      item = made;
    }
    const { text, title = "", alarm = false } = view.current(each);
    const value = item.querySelector(".value");
    item.querySelector(".swatch").style.background = each.colour ?? "currentcolor";
    item.querySelector(".name").textContent = view.label(each);
    value.textContent = text;
    value.title = title;
    value.classList.toggle("alarm", alarm);
  }
}

function itemOf(signal) {
  const item = document.createElement("li");
  item.dataset.signal = signal;
  for (const name of ["swatch", "name", "value"]) {
    item.append(Object.assign(document.createElement("span"), { className: name }));
  }
  const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "✕" });
  remove.ariaLabel = `Take ${signal} off this chart`;
  remove.dataset.remove = signal;
  item.append(remove);
  return item;
}
