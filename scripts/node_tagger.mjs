// Tags lists of words in Node.js for compare_english.py, by an exported page or by the npm package compromise.
//
//     node node_tagger.mjs FOLDER_OF_THE_PAGE_OR_PACKAGE
//
// It reads a JSON list of sentences from each line, and writes their tags and the CPU time: of this line, and since the
// start. Both taggers read text, in which a blank follows each word.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const folder = pathToFileURL(`${resolve(process.argv[2])}/`);
globalThis.fetch = async (url) => new Response(await readFile(new URL(url))); // that of Node.js reads no files

/** A function from a text to its entities: label, start and end. */
async function load() {
  if (existsSync(new URL("tagger.js", folder))) {
    const { Tagger } = await import(new URL("tagger.js", folder));
    const tagger = await Tagger.load(folder, await import(new URL("ort/ort.wasm.min.mjs", folder)));
    return async (text) => (await tagger.tag(text)).map((entity) => [entity.label, entity.startUnit, entity.endUnit]);
  }
  const { default: nlp } = await import(new URL("builds/three/compromise-three.mjs", folder));
  return (text) => {
    const doc = nlp(text);
    const types = { LOC: doc.places(), ORG: doc.organizations(), PER: doc.people() };
    return Object.entries(types).flatMap(([label, matches]) =>
      matches.json({ offset: true }).map(({ terms }) => {
        const [first, last] = [terms[0].offset, terms.at(-1).offset];
        return [label, first.start, last.start + last.length];
      }),
    );
  };
}

/** The tag of each word: of the entity that covers a part of it. */
function tags(words, entities) {
  let end = -1;
  return words.map((word) => {
    const start = end + 1;
    end = start + word.length;
    const entity = entities.find(([, from, to]) => from < end && start < to);
    return entity ? `${entity[1] >= start ? "B" : "I"}-${entity[0]}` : "O";
  });
}

const seconds = () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6;
const tag = await load();
for await (const line of createInterface({ input: process.stdin })) {
  const [sentences, begun] = [JSON.parse(line), seconds()];
  const results = [];
  for (const words of sentences) results.push(tags(words, await tag(words.join(" "))));
  console.log(JSON.stringify([results, seconds() - begun, seconds()]));
}
