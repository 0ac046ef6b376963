import * as ort from "./ort/ort.wasm.min.mjs";
import { Tagger } from "./tagger.js";

const [field, state, marked, list] = ["text", "state", "marked", "list"].map((id) => document.getElementById(id));
const percent = (score) => `${Math.round(100 * score)} %`;
const element = (name, ...children) => {
  const node = document.createElement(name);
  node.append(...children);
  return node;
};

/** A hue for each label, the same as in Python's notebooks. */
const hue = (label) => (Array.from(label).reduce((sum, character) => sum + character.codePointAt(0), 0) * 131) % 360;

function show(text, entities) {
  let end = 0;
  const parts = [];
  for (const entity of entities) {
    const mark = element("mark", entity.text, element("small", `${entity.label} ${percent(entity.score)}`));
    mark.style.setProperty("--hue", hue(entity.label));
    parts.push(text.slice(end, entity.startUnit), mark);
    end = entity.endUnit;
  }
  marked.replaceChildren(...parts, text.slice(end));
  list.replaceChildren(
    ...entities.map(({ text: words, label, score }) =>
      element("tr", ...[words, label, percent(score)].map((value) => element("td", value))),
    ),
  );
}

async function load() {
  const begun = performance.now();
  const tagger = await Tagger.load(new URL(".", import.meta.url), ort);
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  globalThis.tagger = tagger; // for those who try it in the console
  return { tagger, seconds };
}

async function tag({ tagger, seconds }) {
  const text = field.value;
  const start = performance.now();
  const entities = await tagger.tag(text);
  show(text, entities);
  const taken = (performance.now() - start).toFixed(1);
  const count = entities.length === 1 ? "1 entity" : `${entities.length} entities`;
  state.textContent = `${count}, found in ${taken} ms; the model was loaded in ${seconds} s.`;
}

try {
  const loaded = await load();
  let newest = 0;
  let running = Promise.resolve();
  // One call of the model at a time. Texts that have changed since are skipped, and one that fails stops no other.
  const update = () => {
    const number = ++newest;
    running = running
      .then(() => number === newest && tag(loaded))
      .catch((error) => (state.textContent = `This text could not be tagged: ${error.message}`));
  };
  field.addEventListener("input", update);
  update();
} catch (error) {
  state.textContent = `The tagger could not be loaded: ${error.message}`;
  throw error;
}
