// Balance a pole: each frame asks the Program for the next tick; the button plays a whole episode in one call.
const TICK = 20;
const WIDE = 2.4;
const LONG = 1.0;

export function cart(model, section) {
  const canvas = section.querySelector("canvas");
  const said = section.querySelector(".said");
  const start = () => Float32Array.from({ length: 4 }, () => (Math.random() - 0.5) / 10);
  let [state, ticks, ended] = [start(), 0, null];
  const again = () => {
    const begin = performance.now();
    const { output } = model.forward({ state: { data: start(), shape: [1, 4] }, ticks: 500 });
    const took = (performance.now() - begin).toFixed(1);
    [state, ticks, ended] = [start(), 0, null];
    said.textContent = `A whole episode: ${output.shape[0] - 1} ticks in ${took} ms`;
  };
  section.querySelector("button").addEventListener("click", again);
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width - 0.5) * 2 * WIDE;
    state[3] += x < state[0] ? -0.6 : 0.6;
  });
  let before = performance.now();
  const frame = (now) => {
    const due = Math.min(5, Math.floor((now - before) / TICK));
    if (due > 0) {
      before = due === 5 ? now : before + due * TICK;
      const { output } = model.forward({ state: { data: state, shape: [1, 4] }, ticks: due });
      const [taken] = [output.shape[0] - 1];
      state = output.data.slice(-4);
      ticks += taken;
      section.dataset.ticks = ticks;
      if (taken < due) ended ??= now;
      draw(canvas, state, ticks);
    }
    if (ended !== null && now - ended > 800) [state, ticks, ended] = [start(), 0, null];
    requestAnimationFrame(frame);
  };
  again();
  requestAnimationFrame(frame);
}

function draw(canvas, [place, , angle], ticks) {
  const pen = canvas.getContext("2d");
  const { width, height } = canvas;
  const scale = width / (2 * WIDE + 0.8);
  const [x, y] = [width / 2 + place * scale, height * 0.72];
  pen.clearRect(0, 0, width, height);
  Object.assign(pen, { strokeStyle: "#98a2ad", lineWidth: 2, fillStyle: "#667", font: "24px system-ui, sans-serif" });
  pen.strokeRect(width / 2 - WIDE * scale, y + 40, 2 * WIDE * scale, 0.1);
  pen.fillText(`${(ticks / 50).toFixed(1)} s`, 16, 34);
  pen.fillStyle = "#1f2328";
  pen.fillRect(x - 50, y, 100, 40);
  Object.assign(pen, { strokeStyle: "#1f6feb", lineWidth: 12, lineCap: "round" });
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x + Math.sin(angle) * LONG * 1.4 * scale, y - Math.cos(angle) * LONG * 1.4 * scale);
  pen.stroke();
}
