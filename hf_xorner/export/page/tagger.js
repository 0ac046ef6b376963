// Tags texts in a browser: a tokenizer that gives what the Python one gives, and the model by ONNX Runtime Web.

const UNKNOWN = 1;
const CODE_POINTS = 0x110000;

/** The pieces of words, as an encoder's own tokenizer cuts them. */
class WordPieces {
  constructor(facts, Tokenizer) {
    Object.assign(this, facts);
    this.tokenizer = new Tokenizer(facts.tokenizer, {});
    this.known = new Map();
  }

  /** The ids + 1 of the first pieces of a word. */
  of(word) {
    let ids = this.known.get(word);
    if (ids === undefined) {
      // JavaScript writes Σ at the end of a word as ς in lower case, the encoder's tokenizer does not.
      const text = this.blank + (this.lowers ? word.replaceAll("\u03a3", "\u03c3") : word);
      const pieces = this.tokenizer.encode(text, { add_special_tokens: false }).ids;
      ids = pieces.slice(0, this.width).map((id) => BigInt(id + 1));
      this.known.set(word, ids);
    }
    return ids;
  }
}

/** Cuts texts into words, and finds the ids of words, characters and pieces. */
export class WordTokenizer {
  /**
   * @param {object} facts What the export wrote to tagger.json.
   * @param {Function} Tokenizer The class of that name in `@huggingface/tokenizers`, for models that read pieces.
   */
  constructor(facts, Tokenizer) {
    this.pieces = facts.pieces ? new WordPieces(facts.pieces, Tokenizer) : null;
    this.pattern = new RegExp(facts.pattern, "gv");
    this.ids = new Map(facts.words.map((word, id) => [word, id]));
    this.forms = facts.forms; // [casing, digits] of each form under which a word is looked up
    this.maxWordChars = facts.max_word_chars;
    this.characters = new Uint32Array(CODE_POINTS);
    let start = 0;
    for (const [id, count] of facts.character_runs) {
      this.characters.fill(id, start, start + count);
      start += count;
    }
  }

  /** Start and end of every word, in UTF-16 units. */
  words(text) {
    return Array.from(text.matchAll(this.pattern), (match) => [match.index, match.index + match[0].length]);
  }

  /** The id of a word; the forms of a word are those of `WordLookup.forms`. */
  wordId(word) {
    let id;
    for (let n = 0; id === undefined && n < this.forms.length; n++) {
      const [casing, digits] = this.forms[n];
      let form = digits === "zero" ? word.replace(/\p{Nd}/gu, "0") : word;
      if (casing === "lower") form = form.replaceAll("\u0130", "i").toLowerCase();
      id = this.ids.get(form);
    }
    return id || UNKNOWN; // 0 pads, and no word is padding
  }

  /** The inputs of the model for the words of one sentence: flat values, and their shape. */
  inputs(sentence) {
    const number = new Map();
    for (const word of sentence) if (!number.has(word)) number.set(word, BigInt(number.size));
    const words = Array.from(number.keys());
    const idOf = (character) => BigInt(this.characters[character.codePointAt(0)]);
    const characters = words.map((word) => Array.from(word).slice(0, this.maxWordChars).map(idOf));
    const longest = characters.reduce((most, each) => Math.max(most, each.length), 1);
    const inputs = {
      input_ids: [BigInt64Array.from(words, (word) => BigInt(this.wordId(word))), [words.length]],
      char_ids: [table(characters, longest), [words.length, longest]],
      word_index: [BigInt64Array.from(sentence, (word) => number.get(word)), [1, sentence.length]],
      attention_mask: [new BigInt64Array(sentence.length).fill(1n), [1, sentence.length]],
    };
    if (this.pieces) {
      const { width } = this.pieces;
      inputs.piece_ids = [table(words.map((word) => this.pieces.of(word)), width), [words.length, width]];
    }
    return inputs;
  }
}

/** Rows of numbers as one array, each padded with 0. */
function table(rows, width) {
  const values = new BigInt64Array(rows.length * width);
  rows.forEach((row, number) => values.set(row, number * width));
  return values;
}

/** A model with its tokenizer. */
export class Tagger {
  constructor(ort, session, facts, Tokenizer) {
    Object.assign(this, { ort, session, tokenizer: new WordTokenizer(facts, Tokenizer) });
    this.labels = facts.labels.map((label) => ({
      type: /^[BI]-/.test(label) ? label.slice(2) : label,
      begins: label.startsWith("B-"),
      outside: label === "O",
    }));
    const least = facts.min_score ?? 0; // one number, or numbers by label
    this.minScore = (label) => (typeof least === "number" ? least : (least[label] ?? 0));
  }

  /** Load the files of an export. `ort` is the module of ONNX Runtime Web. */
  static async load(folder, ort) {
    ort.env.wasm.wasmPaths = new URL("ort/", folder).href;
    ort.env.wasm.numThreads = 1; // more need headers that static hosts do not send
    const facts = await (await fetch(new URL("tagger.json", folder))).json();
    const session = await ort.InferenceSession.create(new URL("model.onnx", folder).href, {
      executionProviders: ["wasm"],
    });
    const library = facts.pieces ? await import(new URL("tokenizers/tokenizers.min.mjs", folder).href) : {};
    return new Tagger(ort, session, facts, library.Tokenizer);
  }

  /**
   * The entities of a text: label, text, score, `start` and `end` in Unicode code points as in Python, and
   * `startUnit` and `endUnit` in UTF-16 units as in JavaScript strings. Of an array of texts, an array of these.
   */
  async tag(texts) {
    if (Array.isArray(texts)) {
      const all = [];
      for (const text of texts) all.push(await this.tag(text));
      return all;
    }
    const text = texts.toWellFormed();
    const offsets = this.tokenizer.words(text);
    if (!offsets.length) return [];
    const feeds = {};
    const words = offsets.map(([start, end]) => text.slice(start, end));
    for (const [name, [values, shape]] of Object.entries(this.tokenizer.inputs(words))) {
      feeds[name] = new this.ort.Tensor("int64", values, shape);
    }
    const { labels, path_log_probs: logProbs } = await this.session.run(feeds);
    return this.entities(text, offsets, Array.from(labels.data, Number), logProbs.data);
  }

  /** Neighbours of one type, up to the next B- label. */
  entities(text, offsets, labels, logProbs) {
    const entities = [];
    for (let first = 0, end; first < labels.length; first = end) {
      const { type, outside } = this.labels[labels[first]];
      // The first word by itself, the others given the word before: exact for a chain.
      let logProb = logProbs[2 * first];
      for (end = first + 1; end < labels.length; end++) {
        const next = this.labels[labels[end]];
        if (next.type !== type || next.begins) break;
        logProb += logProbs[2 * end + 1];
      }
      if (outside) continue;
      const [startUnit, endUnit] = [offsets[first][0], offsets[end - 1][1]];
      const score = Math.exp(Math.min(logProb, 0));
      if (score < this.minScore(type)) continue;
      entities.push({ label: type, text: text.slice(startUnit, endUnit), score, startUnit, endUnit });
    }
    let unit = 0;
    let point = 0;
    const points = (upTo) => {
      for (; unit < upTo; point++) unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
      return point;
    };
    return entities.map((entity) => ({ ...entity, start: points(entity.startUnit), end: points(entity.endUnit) }));
  }
}
