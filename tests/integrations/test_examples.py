"""The examples for servers, Presidio and Label Studio give the entities of the tagger."""

import asyncio
import re
import runpy

import pytest
from conftest import REPOSITORY
from random_texts import TEXTS

EXAMPLES = REPOSITORY / "docs" / "examples"
NAMES = {"PER": "PERSON", "LOC": "LOCATION"}
CONFIG = """
<View>
  <Labels name="label" toName="text"><Label value="PER"/><Label value="GOD"/></Labels>
  <Text name="text" value="$sentence"/>
</View>
"""


def test_a_server_tags_waiting_requests_together(tagger):
    pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install fastapi httpx")
    page = (REPOSITORY / "docs" / "integrations.md").read_text(encoding="utf-8")
    (code,) = re.search(r"```python\n([^`]*waiting[^`]*?)with TestClient", page).groups()
    server, sizes = {}, []
    exec(code, server)

    def counted(texts):
        sizes.append(len(texts))
        if "fail" in texts:
            raise ValueError("fail")
        return tagger(texts)

    async def answers_to(texts):
        async with server["lifespan"](server["app"]):
            cancelled = asyncio.create_task(server["entities"]("cancelled"))
            await asyncio.sleep(0)
            cancelled.cancel()
            return await asyncio.wait_for(asyncio.gather(*map(server["entities"], texts)), 60)

    server["tagger"] = counted
    texts = TEXTS * 6
    found = [[entity | {"score": pytest.approx(entity.score, abs=1e-5)} for entity in row] for row in tagger(texts)]
    assert asyncio.run(answers_to(texts)) == found
    assert max(sizes) == 64 and len(sizes) <= len(texts) // 64 + 2
    server["waiting"] = asyncio.Queue()
    assert all(isinstance(answer, ValueError) for answer in asyncio.run(answers_to(["fail", *TEXTS[:3]])))


def test_a_presidio_engine_finds_the_entities_of_the_tagger_and_its_own_patterns(tagger_folder, tagger):
    pytest.importorskip("presidio_analyzer", reason="Presidio is not installed: pip install presidio-analyzer")
    analyzer = runpy.run_path(str(EXAMPLES / "presidio.py"))["analyzer_of"](tagger_folder, NAMES, min_score=0.3)
    (address,) = analyzer.analyze("at 192.0.2.1", "en", ["IP_ADDRESS"])
    assert (address.start, address.end) == (3, 12)
    count = 0
    for text in TEXTS:
        for wanted in (["PERSON", "LOCATION"], ["LOCATION"]):
            results = [
                (result.entity_type, result.start, result.end, result.score)
                for result in analyzer.analyze(text, "en", wanted)
            ]
            expected = [(NAMES.get(e.label), e.start, e.end, e.score) for e in tagger(text) if e.score >= 0.3]
            expected = [row for row in expected if row[0] in wanted]
            assert sorted(results) == sorted(expected)
            count += len(expected)
    assert count > 10


def test_a_label_studio_backend(tagger_folder, tagger, monkeypatch):
    reason = "label-studio-ml is not installed: pip install label-studio-ml redis rq"
    pytest.importorskip("label_studio_ml.model", reason=reason)
    monkeypatch.setenv("MODEL", tagger_folder)
    backend = runpy.run_path(str(EXAMPLES / "label_studio.py"))["TaggerBackend"](label_config=CONFIG)
    predictions = backend.predict([{"data": {"sentence": text}} for text in TEXTS])
    count = 0
    for prediction, text in zip(predictions, TEXTS, strict=True):
        known = [entity for entity in tagger(text) if entity.label in ("PER", "GOD")]
        about = {"from_name": "label", "to_name": "text", "type": "labels"}
        assert prediction["result"] == [
            {
                **about,
                "score": pytest.approx(e.score, abs=1e-5),
                "value": {"start": e.start, "end": e.end, "text": text[e.start : e.end], "labels": [e.label]},
            }
            for e in known
        ]
        assert prediction["score"] == pytest.approx(min([e.score for e in known], default=1.0), abs=1e-5)
        count += len(known)
    assert count > 5
