// Write on: characters become numbers, the Program writes until a sentence ends, numbers become characters.
const MOST = 300;

export async function writer(model, section) {
  const letters = [...(await (await fetch("letters.json")).json())];
  const [start, temperature] = section.querySelectorAll("input");
  const text = section.querySelector("#text");
  const time = section.querySelector(".time");
  const write = () => {
    const known = [...start.value].filter((letter) => letters.includes(letter));
    const given = known.length ? known : [" "];
    const begin = performance.now();
    const { output } = model.forward({
      start: given.map((letter) => letters.indexOf(letter)), temperature: Number(temperature.value), most: MOST,
    });
    const took = performance.now() - begin;
    const written = [...output.data].map((number) => letters[Number(number)]).join("");
    const first = Object.assign(document.createElement("b"), { textContent: given.join("") });
    text.replaceChildren(first, written.trimEnd());
    time.textContent = `${output.data.length} characters in ${took.toFixed(1)} ms`;
  };
  section.querySelector("button").addEventListener("click", write);
  start.addEventListener("keydown", (event) => event.key === "Enter" && write());
  write();
}
