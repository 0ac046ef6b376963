"""The papers behind the architectures, as BibTeX."""

#: The paper that each architecture comes from, by `model_type`.
PAPERS = {
    "bilstm-cnn": "li2020",
    "cross-bilstm-cnn": "li2020",
    "att-bilstm-cnn": "li2020",
    "lstm-crf": "lample2016",
    "stack-lstm": "lample2016",
    "cnn-lstm-crf": "ma2016",
    "grn": "chen2019",
    "id-cnn": "strubell2017",
}

_BIBTEX = {
    "li2020": """\
@inproceedings{li2020,
  title     = {Why Attention? Analyze {BiLSTM} Deficiency and Its Remedies in the Case of {NER}},
  author    = {Li, Peng-Hsuan and Fu, Tsu-Jui and Ma, Wei-Yun},
  booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
  year      = {2020},
}""",
    "lample2016": """\
@inproceedings{lample2016,
  title     = {Neural Architectures for Named Entity Recognition},
  author    = {Lample, Guillaume and Ballesteros, Miguel and Subramanian, Sandeep and Kawakami, Kazuya and Dyer, Chris},
  booktitle = {Proceedings of NAACL-HLT},
  year      = {2016},
}""",
    "ma2016": """\
@inproceedings{ma2016,
  title     = {End-to-end Sequence Labeling via Bi-directional {LSTM-CNNs-CRF}},
  author    = {Ma, Xuezhe and Hovy, Eduard},
  booktitle = {Proceedings of the Annual Meeting of the Association for Computational Linguistics},
  year      = {2016},
}""",
    "chen2019": """\
@inproceedings{chen2019,
  title     = {{GRN}: Gated Relation Network to Enhance Convolutional Neural Network for Named Entity Recognition},
  author    = {Chen, Hui and Lin, Zijia and Ding, Guiguang and Lou, Jianguang and Zhang, Yusen and Karlsson, Borje},
  booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
  year      = {2019},
}""",
    "strubell2017": """\
@inproceedings{strubell2017,
  title     = {Fast and Accurate Entity Recognition with Iterated Dilated Convolutions},
  author    = {Strubell, Emma and Verga, Patrick and Belanger, David and McCallum, Andrew},
  booktitle = {Proceedings of the Conference on Empirical Methods in Natural Language Processing},
  year      = {2017},
}""",
}


def bibtex(model_type: str) -> str:
    """The BibTeX entry of the paper that an architecture comes from."""
    return _BIBTEX[PAPERS[model_type]]
