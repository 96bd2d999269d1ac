// Learn an equation: a frame takes as many steps as it has time for, then draws the field and the loss.
const FRAME = 12;
const [WIDTH, HEIGHT] = [64, 48];
const [NU, SPEED, HIGH] = [0.1, 0.5, 0.5];

export function field(model, section) {
  const [network, solution, curve] = section.querySelectorAll("canvas");
  const said = section.querySelector(".said");
  const [x, t] = grid();
  let [learner, steps, losses, runs] = [model.another(), 0, [], true];
  const exact = x.data.map((place, i) => SPEED - HIGH * Math.tanh((HIGH * (place - SPEED * t.data[i])) / (2 * NU)));
  paint(solution, exact);
  const pause = section.querySelector(".go");
  pause.addEventListener("click", () => {
    runs = !runs;
    pause.textContent = runs ? "Pause" : "Go on";
  });
  section.querySelector(".new").addEventListener("click", () => {
    learner.free();
    [learner, steps, losses] = [model.another({ seed: Math.floor(Math.random() * 2 ** 31) }), 0, []];
  });
  const frame = () => {
    const begin = performance.now();
    while (runs && performance.now() - begin < FRAME) {
      losses.push(learner.learn().output);
      steps++;
    }
    if (runs) {
      const u = learner.forward({ x, t }).output.data;
      const far = u.reduce((most, value, i) => Math.max(most, Math.abs(value - exact[i])), 0);
      paint(network, u);
      plot(curve, losses);
      said.textContent = `${steps} steps, loss ${losses.at(-1).toExponential(1)}, largest error ${far.toFixed(3)}`;
      Object.assign(section.dataset, { steps, loss: losses.at(-1), first: losses[0] });
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

function grid() {
  const [x, t] = [new Float32Array(WIDTH * HEIGHT), new Float32Array(WIDTH * HEIGHT)];
  for (let i = 0; i < x.length; i++) {
    x[i] = (2 * (i % WIDTH)) / (WIDTH - 1) - 1;
    t[i] = 1 - Math.floor(i / WIDTH) / (HEIGHT - 1);
  }
  return [x, t].map((data) => ({ data, shape: [data.length, 1] }));
}

/** Draw u from 0 (white) to 1 (blue). */
function paint(canvas, u) {
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(WIDTH, HEIGHT);
  u.forEach((value, i) => {
    const part = Math.min(1, Math.max(0, value));
    image.data.set([250 - 220 * part, 250 - 140 * part, 252 - 20 * part, 255], 4 * i);
  });
  pen.putImageData(image, 0, 0);
}

/** Draw losses over steps, with a logarithmic axis from 1e-5 to 10. */
function plot(canvas, losses) {
  const pen = canvas.getContext("2d");
  const { width, height } = canvas;
  pen.clearRect(0, 0, width, height);
  Object.assign(pen, { strokeStyle: "#1f6feb", lineWidth: 2.5, lineJoin: "round" });
  pen.beginPath();
  const apart = Math.max(1, losses.length / width);
  for (let i = 0; i < losses.length; i += apart) {
    const loss = losses[Math.floor(i)];
    const y = ((1 - Math.log10(Math.max(loss, 1e-5))) / 6) * (height - 8) + 4;
    pen.lineTo((i / Math.max(losses.length - 1, 1)) * width, y);
  }
  pen.stroke();
}
