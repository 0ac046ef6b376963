"""A Label Studio ML backend that proposes the entities of a tagger; tested with label-studio-ml 1.0.9."""

import os
from typing import Any

from label_studio_ml.model import LabelStudioMLBase

from hf_xorner import Tagger

TAGGER = Tagger.from_pretrained(os.environ["MODEL"])


class TaggerBackend(LabelStudioMLBase):
    """Proposes entities for the control <Labels> of a project, which names labels as the model does."""

    def predict(self, tasks: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
        """Return one prediction for each task; its score is that of the least certain entity."""
        controls = self.parsed_label_config.items()
        name, control = next(pair for pair in controls if pair[1]["type"] == "Labels")
        about = {"from_name": name, "to_name": control["to_name"][0], "type": "labels"}
        predictions = []
        for entities in TAGGER([task["data"][control["inputs"][0]["value"]] for task in tasks]):
            known = [entity for entity in entities if entity.label in control["labels"]]
            values = [{"start": e.start, "end": e.end, "text": e.text, "labels": [e.label]} for e in known]
            result = [{**about, "value": value, "score": e.score} for value, e in zip(values, known, strict=True)]
            predictions.append({"result": result, "score": min((e.score for e in known), default=1.0)})
        return predictions
