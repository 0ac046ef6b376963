.PHONY: setup test lint format typecheck docs try-it help pictures results published-code

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

# The page "Try it" of the site: the English model in the browser, from npm packages.
try-it:
	npm install --no-save --ignore-scripts --prefix build/npm onnxruntime-web@1.30.0 @huggingface/tokenizers@0.2.0
	hf-xorner export "$$(python -c 'import hf_xorner; print(hf_xorner.english())')" --to web --output site/try \
	--node_modules build/npm/node_modules

# The help texts and option names of the command line, from the fields of its options.
help:
	python -c "from hf_xorner.cli.help import write_help; write_help()"

# The diagrams of the architectures, and the pictures of the README.
pictures:
	python scripts/diagrams.py
	python scripts/readme_pictures.py

# The tables of docs/results.md and README.md, from model_cards/results.json.
results:
	python scripts/results_page.py

# The code published with the weights of the models in this repository.
published-code:
	files=$$(python -c "from transformers.dynamic_module_utils import get_relative_import_files as files; \
	models = 'hf_xorner/models/'; main = ['modeling_cnn_lstm_crf.py', 'tokenization_word_char.py']; \
	print(*{each for name in main for each in [models + name, *files(models + name)]})") && \
	rm -f model_cards/*/*.py && \
	for model in model_cards/*/model.safetensors; do cp $$files $${model%/*} || exit 1; done
