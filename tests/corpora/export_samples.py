"""One small corpus in the format of every annotation tool, written without the library's code."""

import json
from itertools import pairwise

#: Texts, their spans as (words before it in the text, its text, label), and their words.
TEXTS = [
    ("Ann Lee doesn't live in Oslo.", [("Ann Lee", "PER"), ("Oslo", "LOC")], "Ann Lee does n't live in Oslo ."),
    ("It rains.", [], "It rains ."),
    ("Bo met 👩🏽‍🚀 Zoë in New York City!", [("Bo", "PER"), ("Zoë", "PER"), ("New York City", "LOC")],
     "Bo met 👩🏽‍🚀 Zoë in New York City !"),
]  # fmt: skip


def spans(text, entities):
    return [(text.index(part), text.index(part) + len(part), label) for part, label in entities]


def words(text, tokens):
    offsets, at = [], 0
    for token in tokens.split(" "):
        at = text.index(token, at)
        offsets.append((at, at + len(token)))
        at += len(token)
    return offsets


def tags(text, entities, tokens):
    """The tags of the words in IOB2."""
    result = []
    for start, after in words(text, tokens):
        covering = [span for span in spans(text, entities) if span[0] <= start and after <= span[1]]
        result += [f"{'B' if start == first else 'I'}-{label}" for first, _, label in covering] or ["O"]
    return result


def lines(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def of_words():
    return [{"tokens": tokens.split(" "), "ner_tags": tags(text, entities, tokens)} for text, entities, tokens in TEXTS]


def doccano(key, text_key="text"):
    return [
        {"id": number, text_key: text, "meta": {}, key: [list(span) for span in spans(text, entities)]}
        for number, (text, entities, _) in enumerate(TEXTS)
    ]


def doccano_entities():
    return [
        {
            "id": number,
            "text": text,
            "entities": [
                {"id": start, "label": label, "start_offset": start, "end_offset": end}
                for start, end, label in spans(text, entities)
            ],
            "relations": [],
            "Comments": [],
        }
        for number, (text, entities, _) in enumerate(TEXTS)
    ]


def prodigy():
    records = [
        {
            "text": text,
            "_input_hash": -7,
            "tokens": [
                {"text": text[start:end], "start": start, "end": end, "id": index, "ws": text[end : end + 1] == " "}
                for index, (start, end) in enumerate(words(text, tokens))
            ],
            "spans": [{"start": start, "end": end, "label": label} for start, end, label in spans(text, entities)],
            "_view_id": "ner_manual",
            "answer": "accept",
        }
        for text, entities, tokens in TEXTS
    ]
    return [records[0], records[0] | {"answer": "reject"}, *records[1:], records[1] | {"answer": "ignore"}]


def utf16(text, at):
    return len(text[:at].encode("utf-16-le")) // 2


def regions(text, entities, units=lambda text, at: at):
    return [
        {"start": units(text, start), "end": units(text, end), "text": text[start:end], "labels": [label]}
        for start, end, label in spans(text, entities)
    ]


def label_studio(units=lambda text, at: at):
    tasks = []
    for number, (text, entities, _) in enumerate(TEXTS, start=1):
        result = [
            {"value": value, "id": f"r{value['start']}", "from_name": "label", "to_name": "text", "type": "labels"}
            for value in regions(text, entities, units)
        ]
        relation = {"from_id": "r0", "to_id": "r24", "type": "relation", "direction": "right"}
        annotation = {"id": 9, "completed_by": 1, "result": [*result, relation], "was_cancelled": False}
        tasks.append({"id": number, "annotations": [annotation], "predictions": [], "data": {"text": text}})
    cancelled = tasks[0] | {"annotations": [tasks[0]["annotations"][0] | {"was_cancelled": True}]}
    second = tasks[1]["annotations"][0] | {"result": tasks[2]["annotations"][0]["result"]}
    tasks[1]["annotations"] = [second, tasks[1]["annotations"][0] | {"ground_truth": True}]
    return [*tasks, cancelled, tasks[0] | {"annotations": []}]


def label_studio_min():
    records = []
    for number, (text, entities, _) in enumerate(TEXTS, start=1):
        record = {"text": text, "id": number, "annotator": 1, "annotation_id": number, "lead_time": 3.5}
        # Label Studio leaves out a control that was not used.
        records.append(record | ({"label": regions(text, entities)} if entities else {}))
    return records


def training_pairs():
    return [[text, {"entities": [list(span) for span in spans(text, entities)]}] for text, entities, _ in TEXTS]


def dataturks():
    """Ends are those of the last characters, and a span may have no label."""
    return [
        {
            "content": text,
            "annotation": [
                {"label": [label], "points": [{"start": start, "end": end - 1, "text": text[start:end]}]}
                for start, end, label in spans(text, entities)
            ]
            + [{"label": [], "points": [{"start": 0, "end": 1, "text": text[:2]}]}],
            "extras": None,
        }
        for text, entities, _ in TEXTS
    ]


def named_spans():
    return [
        {
            "curid": "7",
            "text": text,
            "entities": [
                {"name": text[start:end], "span": [start, end], "type": label, "type_id": 1}
                for start, end, label in spans(text, entities)
            ],
        }
        for text, entities, _ in TEXTS
    ]


def gliner():
    records = []
    for text, entities, tokens in TEXTS:
        offsets = words(text, tokens)
        starts, ends = ([offset[side] for offset in offsets] for side in (0, 1))
        ner = [[starts.index(start), ends.index(end), label] for start, end, label in spans(text, entities)]
        records.append({"tokenized_text": tokens.split(" "), "ner": ner})
    return records


def biluo(text, entities, tokens):
    row = [*tags(text, entities, tokens), "O"]
    return [
        tag if tag == "O" else f"{'UB'[after[0] == 'I'] if tag[0] == 'B' else 'LI'[after[0] == 'I']}{tag[1:]}"
        for tag, after in pairwise(row)
    ]


def brat():
    """The text and the annotation of one document with a line for each text."""
    text, entities, at = "", [], 0
    for line, spans_of_line, _ in TEXTS:
        entities += [(at + start, at + end, label) for start, end, label in spans(line, spans_of_line)]
        text += line + "\n"
        at += len(line) + 1
    marks = [f"T{n}\t{label} {start} {end}\t{text[start:end]}\n" for n, (start, end, label) in enumerate(entities, 1)]
    return text, "".join([*marks, "R1\tlives Arg1:T1 Arg2:T2\t\n", "#1\tAnnotatorNotes T1\tTo be checked\n"])


def json_files():
    """Every form of JSON by name: the name of a file and its content."""
    several = {
        "words and tags": of_words(),
        "spans": doccano("spans"),
        "doccano, labels": doccano("labels"),
        "doccano, label": doccano("label"),
        "doccano, data": doccano("label", "data"),
        "doccano, entities": doccano_entities(),
        "Prodigy": prodigy(),
        "Dataturks": dataturks(),
        "stockmark": named_spans(),
        "spaCy, spans": [[text, [list(span) for span in spans(text, entities)]] for text, entities, _ in TEXTS],
        "spaCy, tags": [[tokens, biluo(text, entities, tokens)] for text, entities, tokens in TEXTS],
        "sentence": [{"sentence": row[2], "tags": " ".join(tags(*row))} for row in TEXTS],
        "GLiNER": gliner(),
        "Label Studio": label_studio(),
        "Label Studio, UTF-16": label_studio(utf16),
        "Label Studio, JSON-MIN": label_studio_min(),
    }
    files = {}
    for name, records in several.items():
        files[f"{name}, lines"] = ("x.jsonl", lines(records))
        files[f"{name}, indented array"] = ("x.txt", json.dumps(records, indent=2, ensure_ascii=False))
    annotator = {"classes": ["PER", "LOC"], "annotations": [*training_pairs(), None]}
    files["NER Annotator"] = ("x.json", json.dumps(annotator))
    files["NER Annotator, indented"] = ("x.json", json.dumps(annotator, indent=1))
    files["spaCy, pairs"] = ("x.json", json.dumps(training_pairs(), indent=1))
    return files
