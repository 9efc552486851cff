// Lists beside the charts, read when they are opened.

export function list(root, load, item, { failed, worked }) {
  root.addEventListener("toggle", async () => {
    if (!root.open) return;
    try {
      const found = await load();
      root.querySelector("ul").replaceChildren(...found.map(item));
      root.querySelector(".hint").textContent = found.length ? "" : "There is none that you may read.";
      worked();
    } catch (error) {
      failed(error);
    }
  });
}

// An item with a button: a name, a short text beside it, and a longer one below.
export function choice(name, short, about, chosen) {
  const item = document.createElement("li"), button = Object.assign(document.createElement("button"), { type: "button" });
  for (const [className, textContent] of [["name", name], ["age", short], ["about", about]]) {
    button.append(Object.assign(document.createElement("span"), { className, textContent }));
  }
  button.addEventListener("click", chosen);
  item.append(button);
  return item;
}
