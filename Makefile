.PHONY: setup test lint format typecheck docs help pictures results published-code

setup:
	pip install -e ".[dev,docs]"
	pre-commit install

test:
	pytest

lint:
	ruff check .
	ruff format --check .

format:
	ruff check --fix .
	ruff format .

typecheck:
	mypy

docs:
	mkdocs build --strict

# The help texts and option names of the command line, from the fields of its options.
help:
	python -c "from hf_xorner.cli.help import write_help; write_help()"

# The diagrams of the architectures.
pictures:
	python scripts/diagrams.py

# The tables of docs/results.md and README.md, from model_cards/results.json.
results:
	python scripts/results_page.py

# The code beside the weights of the model in this repository.
published-code:
	rm -f model_cards/english-ner-small/*.py
	python -c "from transformers.dynamic_module_utils import get_relative_import_files as files; \
	models = 'hf_xorner/models/'; main = ['modeling_cnn_lstm_crf.py', 'tokenization_word_char.py']; \
	print(*{each for name in main for each in [models + name, *files(models + name)]})" \
	| xargs cp -t model_cards/english-ner-small
