// Pictures that charts are not made for, on a canvas as sharp as the screen.

/** Make a canvas that is drawn anew when its size changes; paint(context, width, height) draws in CSS pixels. */
function picture({ label, height, paint }) {
  const canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": label, "data-picture": true });
  const tip = element("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const holder = element("div", { class: "picture" }, canvas, tip);
  let waiting = false;
  let lastHeight = 0;

  function draw() {
    waiting = false;
    const width = holder.clientWidth;
    if (!width) return;
    const tall = typeof height === "function" ? height(width) : height;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || lastHeight !== tall) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(tall * scale);
      canvas.style.height = `${tall}px`;
      lastHeight = tall;
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, tall);
    paint(context, width, tall);
    holder.dataset.drawn = "yes";
  }

  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
  };

  function pointAt(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  function showTip(lines, event) {
    tip.hidden = !lines;
    if (!lines) return;
    tip.replaceChildren(...lines.map((line) => element("div", {}, line)));
    const [x, y] = pointAt(event);
    const left = x + 16 + tip.offsetWidth > holder.clientWidth ? x - 16 - tip.offsetWidth : x + 16;
    Object.assign(tip.style, { left: `${Math.max(0, left)}px`, top: `${y + 12}px` });
  }

  canvas.addEventListener("pointerleave", (event) => showTip(null, event));
  new ResizeObserver(redraw).observe(holder);
  drawn.pictures.push(draw);
  return { holder, canvas, redraw, pointAt, showTip };
}

/** Black or white, whichever can be read on a colour given as #rrggbb. */
function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000000" : "#ffffff";
}
