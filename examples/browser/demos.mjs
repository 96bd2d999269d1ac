// What the page does with its models; each has a section, and ends in its own error.
import { cart } from "./cart.mjs";
import { digits } from "./digits.mjs";
import { field } from "./field.mjs";
import { writer } from "./writer.mjs";

for (const [name, begin] of Object.entries({ digits, cart, writer, field })) {
  const section = document.getElementById(name);
  import(`./${name}/${name}.mjs`)
    .then(({ load }) => load())
    .then((model) => begin(model, section))
    .then(() => (section.dataset.state = "ready"))
    .catch((error) => {
      section.dataset.state = "failed";
      section.querySelector(".said").classList.add("error");
      section.querySelector(".said").textContent = error.message;
    });
}
