// Draw a digit: strokes become 8 by 8 gray pixels in the middle of the image, as those that the network has seen.
const SIDE = 8;
const STROKE = 20;

export function digits(model, section) {
  const canvas = section.querySelector("canvas");
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const said = section.querySelector(".said");
  const bars = section.querySelector(".bars");
  bars.innerHTML = Array.from({ length: 10 }, (_, i) => `<li><span>${i}</span><i></i><span></span></li>`).join("");
  const clear = () => {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    show(bars, new Array(10).fill(0));
    said.textContent = "";
  };
  const read = () => {
    const data = pixels(canvas, pen);
    if (!data) return;
    const begin = performance.now();
    const { output } = model.forward({ image: { data, shape: [1, 1, SIDE, SIDE] } });
    said.textContent = `${(performance.now() - begin).toFixed(2)} ms`;
    show(bars, [...output.data]);
  };
  let last = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * canvas.width) / box.width, ((event.clientY - box.top) * canvas.height) / box.height];
  };
  const stroke = (event) => {
    const next = place(event);
    Object.assign(pen, { lineWidth: STROKE, lineCap: "round", lineJoin: "round", strokeStyle: "#1f2328" });
    pen.beginPath();
    pen.moveTo(...last);
    pen.lineTo(...next);
    pen.stroke();
    last = next;
    read();
  };
  canvas.addEventListener("pointerdown", (event) => {
    last = place(event);
    stroke(event);
  });
  addEventListener("pointermove", (event) => last && stroke(event));
  addEventListener("pointerup", () => (last = null));
  section.querySelector("button").addEventListener("click", clear);
  clear();
}

/** Return the gray of 8 by 8 pixels, with what is drawn in the middle; null where nothing is drawn. */
function pixels(canvas, pen) {
  const { data, width, height } = pen.getImageData(0, 0, canvas.width, canvas.height);
  const dark = (x, y) => (x >= 0 && y >= 0 && x < width && y < height ? 1 - data[4 * (y * width + x)] / 255 : 0);
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      if (dark(x, y) > 0.5) [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
  if (right < 0) return null;
  const size = Math.max(bottom - top + 1, right - left + 1, 60);
  const [from, above] = [(left + right + 1 - size) / 2, (top + bottom + 1 - size) / 2];
  const gray = new Float32Array(SIDE * SIDE);
  const cell = size / SIDE;
  const FINE = 8;
  for (let i = 0; i < SIDE * FINE; i++)
    for (let j = 0; j < SIDE * FINE; j++) {
      const [x, y] = [Math.floor(from + ((j + 0.5) * cell) / FINE), Math.floor(above + ((i + 0.5) * cell) / FINE)];
      gray[SIDE * Math.floor(i / FINE) + Math.floor(j / FINE)] += dark(x, y) / FINE ** 2;
    }
  return gray;
}

function show(bars, chances) {
  const best = Math.max(...chances);
  [...bars.children].forEach((bar, i) => {
    bar.classList.toggle("best", best > 0 && chances[i] === best);
    bar.children[1].style.setProperty("--chance", chances[i]);
    bar.children[2].textContent = best > 0 ? `${(100 * chances[i]).toFixed(0)} %` : "";
  });
}
