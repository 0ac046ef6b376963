"""One small corpus in the format of every annotation tool, written without the library's code."""

import base64
import json
import struct

#: Texts, their spans as (words before it in the text, its text, label), and their words.
TEXTS = [
    ("Ann Lee doesn't live in Oslo.", [("Ann Lee", "PER"), ("Oslo", "LOC")], "Ann Lee does n't live in Oslo ."),
    ("It rains.", [], "It rains ."),
    ("Bo met 👩🏽‍🚀 Zoë in New York City!", [("Bo", "PER"), ("Zoë", "PER"), ("New York City", "LOC")],
     "Bo met 👩🏽‍🚀 Zoë in New York City !"),
]  # fmt: skip
#: Sentences, words, and entities by type.
COUNTS = (3, 20, {"PER": 3, "LOC": 2})


def spans(text, found):
    return [(text.index(part), text.index(part) + len(part), label) for part, label in found]


def words(text, tokens):
    places, at = [], 0
    for token in tokens.split(" "):
        at = text.index(token, at)
        places.append((at, at + len(token)))
        at += len(token)
    return places


def tags(text, found, tokens, begin="B", inside="I", end="I", single="B"):
    """One tag a word, in a scheme of the given letters."""
    result = []
    for start, after in words(text, tokens):
        covering = [span for span in spans(text, found) if span[0] <= start and after <= span[1]]
        if not covering:
            result.append("O")
            continue
        ((first, last, label),) = covering
        letter = single if (start, after) == (first, last) else begin if start == first else inside
        result.append(f"{end if letter == inside and after == last else letter}-{label}")
    return result


def lines(records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def of_words():
    return [{"tokens": tokens.split(" "), "ner_tags": tags(text, found, tokens)} for text, found, tokens in TEXTS]


def doccano(key):
    return [
        {"id": number, "text": text, "meta": {}, key: [list(span) for span in spans(text, found)]}
        for number, (text, found, _) in enumerate(TEXTS)
    ]


def doccano_entities():
    return [
        {
            "id": number,
            "text": text,
            "entities": [
                {"id": start, "label": label, "start_offset": start, "end_offset": end}
                for start, end, label in spans(text, found)
            ],
            "relations": [],
            "Comments": [],
        }
        for number, (text, found, _) in enumerate(TEXTS)
    ]


def doccano_data():
    return [
        {"id": number, "data": text, "label": [list(span) for span in spans(text, found)]}
        for number, (text, found, _) in enumerate(TEXTS)
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
            "spans": [{"start": start, "end": end, "label": label} for start, end, label in spans(text, found)],
            "_view_id": "ner_manual",
            "answer": "accept",
        }
        for text, found, tokens in TEXTS
    ]
    return [records[0], records[0] | {"answer": "reject"}, *records[1:], records[1] | {"answer": "ignore"}]


def utf16(text, at):
    return len(text[:at].encode("utf-16-le")) // 2


def regions(text, found, units=lambda text, at: at):
    return [
        {"start": units(text, start), "end": units(text, end), "text": text[start:end], "labels": [label]}
        for start, end, label in spans(text, found)
    ]


def label_studio(units=lambda text, at: at):
    tasks = []
    for number, (text, found, _) in enumerate(TEXTS, start=1):
        result = [
            {"value": value, "id": f"r{value['start']}", "from_name": "label", "to_name": "text", "type": "labels"}
            for value in regions(text, found, units)
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
    for number, (text, found, _) in enumerate(TEXTS, start=1):
        record = {"text": text, "id": number, "annotator": 1, "annotation_id": number, "lead_time": 3.5}
        # Label Studio leaves out a control that was not used.
        records.append(record | ({"label": regions(text, found)} if found else {}))
    return records


def training_pairs():
    return [[text, {"entities": [list(span) for span in spans(text, found)]}] for text, found, _ in TEXTS]


def ner_annotator():
    return {"classes": ["PER", "LOC"], "annotations": [*training_pairs(), None]}


def spacy_json():
    bilou = {"end": "L", "single": "U"}
    return [
        {
            "id": number,
            "paragraphs": [
                {
                    "raw": text,
                    "sentences": [
                        {
                            "tokens": [
                                {"id": index, "orth": token, "tag": "X", "ner": tag}
                                for index, (token, tag) in enumerate(
                                    zip(tokens.split(" "), tags(text, found, tokens, **bilou), strict=True)
                                )
                            ],
                            "brackets": [],
                        }
                    ],
                    "cats": [],
                }
            ],
        }
        for number, (text, found, tokens) in enumerate(TEXTS)
    ]


def brat():
    """The text and the annotation of one document with a line for each text."""
    text, entities, at = "", [], 0
    for line, found, _ in TEXTS:
        entities += [(at + start, at + end, label) for start, end, label in spans(line, found)]
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
        "doccano, data": doccano_data(),
        "doccano, entities": doccano_entities(),
        "Prodigy": prodigy(),
        "Label Studio": label_studio(),
        "Label Studio, UTF-16": label_studio(utf16),
        "Label Studio, JSON-MIN": label_studio_min(),
        "spaCy 2": spacy_json(),
    }
    files = {}
    for name, records in several.items():
        files[f"{name}, lines"] = ("some.jsonl", lines(records))
        files[f"{name}, array"] = ("some.json", json.dumps(records))
        files[f"{name}, indented array"] = ("some.txt", json.dumps(records, indent=2, ensure_ascii=False))
    files["spaCy 2, pairs"] = ("some.json", json.dumps(training_pairs(), indent=1))
    files["NER Annotator"] = ("some.json", json.dumps(ner_annotator()))
    files["NER Annotator, indented"] = ("some.json", json.dumps(ner_annotator(), indent=4))
    return files


#: The corpus in a DocBin, as spaCy 3.8 writes it.
DOCBIN = base64.b64decode(
    """
eJzrXF6WWlScmZ+32EDPcGliSUlR8VxHZ08vbx9fP/+As4xHzjIePct4bFlJfnZqXvFRDoX9aYx98ZMt9lmp2Re2Hb9xmAENpKLxmaG0neehmp
+tL61h4ozoGtHAmbNKS+atU5b3LvrRnqy2v4GQPTDz0O0hBGYskL/86Ky1JIwmZA8TsQajAYHF6w9u54yRgdG0suetpPQNLoPeAzCaVvYkb7o9
WXffGk0YTSt7DEt8tSOObpYufGi4Ju7ap7eE7IGlt0ZCCQwNLDq0xufNzfr1MJqQPeT6J/xNgX36RYFcdYm3POeEJfvItYeQ93gjrms5yU67DK
PJtYcQoFe43WQNVLdRNgr/ksGbtP7z6bOE7CG33LnjZJEcYPvsGIwmZA+5/nnxRZxB7ZjtdRhNK3v0OjPfJeSavn4m+urXLfZt+wnZgyvcCAF6
lQcb90yZ1v9ZKePTS99PbHw/HAnZQ255sIXD5/qr2tm5OtOP1u7VmqFGyB6Y8aTaI3xXJbh/ijSX1qXFor2MPadpZU+C3KN7a9lOfYLRhOwhN3
6WFRckJqcWHxFhZGRgBGKQgxkhgIFheU5qXnpJRvERHg4GSNRwAvHy4pKizLz04jsM8gsWKi7UW+yYl7fIKX+Jc2ZJ5SLPksU+/s6LfVJTF/ul
li/xL87JXxzgGrQwYklkflH2kqj8w6sXJwLVJ+UvSQaqX5KSn1q8KDNvUWbJ4pzU1CU5mWWpi3NTSxbnqQMx0IB8oAFLixIz84qXVIIMqAIasP
7D/IkrP8zv3/uooffD/FkNS5ITS4onNzQ0LE3LSUwvnty4KSOxOL40LzsvvzwvHuLBQ8QLrgbSefHpRfmlBcWTjzBOgCAAo6NPXA==
"""
)
#: A document of two sentences with names that spaCy knows by number, and the second text; by spaCy 3.8.
DOCBIN_OF_SENTENCES = base64.b64decode(
    """
eJzrXF6WWlScmZ+32EDPcGliSUlR8RRHX7+AZSX52al5xUcZDzziLDR6VG3uxsSAChihdL2S6cISj9pPzDA+VOI/FOzbGXrs4UNvHnT9MHmYel
zytz7WV/yPnTIBlzyfqLFuwfeeApj97Wj2Lzq0xufNzfr1uPSHvymwT78okIvLf0473oinlEXo49J//4HMitlLTpyC2T+9oTiR78em9dSynzfi
upaT7LTL6PIwgMt8GFhWXJCYnFp8hI8RCTAwLM9JzUsvySg+wsENVARy/PLikqLMvPTiOwzCCxbqLXFxDHFd5Fmy2D/IfWlwSWJKyeKQjNSFEU
uSE4tTF2UWL8osWZKTWVyyNC8xN7V4UX7a4vyi9KVFiZl5xYtLMlLXXJhzYd/Fxgu7Lmy6sGHNhT0IDtCAkuJJDQ1L03IS04snNW7KSCyOL83L
zssvz4uHuPUwNsFDq4F0Xnx6UX5pQfGkI4wTgAgAcFv0Pg==
"""
)


def msgpack(value):
    """A value in MessagePack, with the longest form of every length."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, (str, bytes)):
        raw = value.encode() if isinstance(value, str) else value
        return (b"\xdb" if isinstance(value, str) else b"\xc6") + struct.pack(">I", len(raw)) + raw
    if isinstance(value, dict):
        return b"\xdf" + struct.pack(">I", len(value)) + b"".join(msgpack(k) + msgpack(v) for k, v in value.items())
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(msgpack, value))
