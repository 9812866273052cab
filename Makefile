# The two commands of a newcomer: `make demo` and `make test`. Both set everything up first, in .venv,
# and need Python 3.11 or newer, a Rust toolchain and make.

PYTHON ?= python3
VENV ?= .venv
CARGO ?= cargo
# More arguments for pytest: make test PYTEST="-k unicode -x"
PYTEST ?=
# The minutes of each fuzz target, and what else fuzz/run.py takes: make fuzz MINUTES=10 FUZZ="encoder streaming"
MINUTES ?= 2
FUZZ ?=
# And for the benchmarks: make bench-quick BENCHMARKS="--only gigatoken cold"
BENCHMARKS ?=
# make test-pythons PYTHONS="--newest --short"
PYTHONS ?=
# make release-check CHECKS="build audit --every-python"
CHECKS ?=
# make instructions INSTRUCTIONS=--update
INSTRUCTIONS ?=

BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Builds and installs the package. It runs the command `maturin`, which must be in PATH, where a letter of a drive is no part.
INSTALL = PATH="$$(cd $(BIN) && pwd):$$PATH" $(PIP) --constraint constraints.txt --no-build-isolation --editable '.[cli]'
# uv installs an environment in a tenth of the time of pip. These settings give it the certificates and wheels of pip.
UV := $(BIN)/uv pip install --quiet --python
NEW := $(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python
export UV_SYSTEM_CERTS := true
export UV_HTTP_TIMEOUT := 180
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
# The environment of the oldest versions that pyproject.toml permits.
LOWEST := $(VENV)/lowest
# The environment of the release candidate of the next tokenizers.
TOKENIZERS1 := $(VENV)/tokenizers1
# The environment of the engines of language models; installing compiles llama.cpp (minutes).
ENGINES := $(VENV)/engines
# The environments of the engines that count on many machines.
RAY := $(VENV)/ray
SPARK := $(VENV)/spark
# The environment of the programs that read token files. Two of them ask for old versions of transformers and filelock.
READERS := $(VENV)/token-readers
# The environment of the libraries whose columns we take.
COLUMNS := $(VENV)/columns
# The environment of the program that drives Chromium and Firefox.
PAGE := $(VENV)/page
# The environment of the program that builds the documentation site.
DOCS := $(VENV)/docs
# The environment of the programs that build and audit wheels.
RELEASE := $(VENV)/release
# The environment of the packages that the benchmarks compare with.
BENCH := $(VENV)/bench
# The same for files of documents.
BENCH_CORPORA := $(VENV)/bench-corpora
# The tokenizers in JavaScript that the page's core is compared with.
NPM_PEERS := gpt-tokenizer@4.0.0 js-tiktoken@1.0.21 tiktoken@1.0.22 ai-tokenizer@1.0.6
# The program that builds the fuzz targets.
CARGO_FUZZ := $(VENV)/cargo-fuzz
# Where Debian's cross compiler for ARM is found.
AARCH64 := aarch64-linux-gnu
# The tests, on two processors.
TESTS := -m pytest -n 2 --dist worksteal
# One or more tests of each dependency.
LOWEST_TESTS := $(addprefix tests/,test_results.py test_rows.py test_locks.py chat/test_jinja_operations.py \
    cli/test_cli.py cli/test_cli_view.py compat formats/test_hub.py reference/test_reference.py readers view/test_wasm.py::test_a_rank_file)
# What the tests need in an environment of an engine: what the package does, and what runs them.
TEST_PACKAGES := -r pyproject.toml --extra cli 'pytest>=9' pytest-timeout pytest-xdist hypothesis
# What the Python extension, and what the page's core is made of.
sources = Cargo.toml $(wildcard Cargo.lock) $(shell find $(1) -name '*.rs' -o -name '*.json' -o -name Cargo.toml)
CRATES := $(call sources,crates/core crates/formats crates/readers crates/python)
WASM_CRATES := $(call sources,crates/core crates/formats crates/wasm)
# The page's core, and the page in one file, which the wheel carries.
WASM := page/core.wasm
PAGE_FILE := python/bpe_tokenizer/view/page.html
WASM_TARGET := wasm32-unknown-unknown

# Only the parts of llama.cpp that the tests use are compiled, with many sources in one unit, which those of ggml do not
# permit. ggml keeps its own flags: the tests compare its results with those of PyTorch. The two files, included by
# its projects, set what the command line cannot.
LEAN_LLAMA_CPP := -DGGML_NATIVE=ON -DMTMD_BUILD=OFF -DLLAVA_BUILD=OFF -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF \
    -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF -DCMAKE_UNITY_BUILD=ON \
    -DCMAKE_UNITY_BUILD_BATCH_SIZE=16 -DCMAKE_PROJECT_ggml_INCLUDE=$(abspath $(ENGINES))/ggml.cmake \
    -DCMAKE_PROJECT_llama.cpp_INCLUDE=$(abspath $(ENGINES))/llama.cmake

export PYO3_PYTHON := $(abspath $(BIN)/python)

.DEFAULT_GOAL := help
.PHONY: help build wasm demo test test-rust test-python test-peers test-llama-cpp test-inference test-ray test-spark test-token-readers test-columns test-lowest test-page test-pythons screenshots test-slow test-neon sanitize fuzz environments docs docs-serve lint format audit licences interface release-check crates-package javascript size bench bench-all bench-quick bench-scripts bench-corpora bench-javascript instructions lock clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.built  ## Train on Python's own sources, save, reload, encode and show it
	$(BIN)/bpe-tokenizer demo

build: $(VENV)/.built  ## Build the extension into .venv and the page's core, when their sources changed

# Fails if there is no core, or an old one, where the other targets go on.
wasm: $(PAGE_FILE)  ## Build the page: its core for WebAssembly, and the file that the package opens
	@$(MAKE) --no-print-directory --question $(PAGE_FILE)

test:  ## Run the tests of the core and of the package (minutes)
	$(MAKE) --jobs=2 test-rust $(VENV)/.test  # linking and installing leave a processor free
	$(MAKE) test-python

# The random cases of a property; each run has others. Cargo must not look for the jobs of make, which it cannot reach.
test-rust: export PROPTEST_CASES ?= 100
test-rust:
	MAKEFLAGS= $(CARGO) test --workspace --exclude bpe-tokenizer-python

test-python: $(VENV)/.built $(VENV)/.test
	$(BIN)/python $(TESTS) -m "not slow" $(PYTEST)

test-peers: $(VENV)/.built $(VENV)/.peers $(TOKENIZERS1)/.installed  ## Compare with tiktoken, tokenizers and transformers
	BPE_TOKENIZER_TOKENIZERS1=$(abspath $(TOKENIZERS1)/bin/python) $(BIN)/python $(TESTS) -m "peer and not slow" $(PYTEST)

test-llama-cpp: $(VENV)/.built $(ENGINES)/.installed  ## Compare with llama.cpp, which is compiled first
	PYTHONPATH=python $(ENGINES)/bin/python $(TESTS) -m "llama_cpp and not slow" tests/peers/test_against_llama_cpp.py $(PYTEST)

test-inference: $(VENV)/.built $(ENGINES)/.installed  ## Run a tiny language model on every local engine
	PYTHONPATH=python $(ENGINES)/bin/python -m pytest -m "inference and not slow" tests/inference $(PYTEST)

test-ray: $(VENV)/.built $(RAY)/.installed  ## Count and encode on Ray Data, with workers that are killed
	PYTHONPATH=python $(RAY)/bin/python -m pytest -m "ray and not slow" tests/distributed $(PYTEST)

test-spark: $(VENV)/.built $(SPARK)/.installed  ## The same on Spark (needs Java 17 or newer)
	PYTHONPATH=python $(SPARK)/bin/python -m pytest -m "spark and not slow" tests/distributed $(PYTEST)

test-token-readers: $(VENV)/.built $(READERS)/.installed  ## Read token files with PyTorch, Megatron-LM, OLMo-core, litdata, Polars, C; write to S3 and GCS
	PYTHONPATH=python $(READERS)/bin/python -m pytest -m "token_readers and not slow" tests/corpus $(PYTEST)

test-lowest: $(VENV)/.built $(LOWEST)/.installed  ## Run tests of every dependency with its lowest supported version
	PYTHONPATH=$(abspath python) $(LOWEST)/bin/python $(TESTS) -m "not slow" $(LOWEST_TESTS) $(PYTEST)

test-columns: $(VENV)/.built $(COLUMNS)/.installed  ## Take columns of Polars, DuckDB, pandas, datasets and datatrove
	PYTHONPATH=python $(COLUMNS)/bin/python -m pytest -m "columns and not slow" tests/columns $(PYTEST)

test-page: $(VENV)/.built $(PAGE)/.installed  ## Drive the page in Chromium and Firefox (needs Debian's chromium and firefox-esr)
	PYTHONPATH=python $(PAGE)/bin/python -m pytest -m browser tests/view/browser $(PYTEST)

test-pythons: $(PAGE_FILE)  ## Build and test on each Python of pyenv, PATH and Debian sid (root, debootstrap); PYTHONS=--newest
	$(PYTHON) tests/pythons.py $(PYTHONS) $(PYTEST)

screenshots: $(VENV)/.built $(PAGE)/.installed  ## Take the pictures of README and docs/page.md (needs BPE_TOKENIZER_FIXTURES)
	PYTHONPATH=python $(PAGE)/bin/python docs/screenshots.py

# All cases of the sampled tests too; BPE_TOKENIZER_SAMPLE=0.1 takes a tenth of them, chosen by the date.
test-slow: export BPE_TOKENIZER_SAMPLE ?= 1
# The packages of test-rust, so that nothing is compiled again.
test-slow: $(VENV)/.built $(VENV)/.peers  ## Run the long tests: fuzzing, whole corpora, big trainings, all samples
	MAKEFLAGS= $(CARGO) test --workspace --exclude bpe-tokenizer-python -- --ignored --nocapture
	$(BIN)/python $(TESTS) -m "slow or sampled" -o timeout=1800 -o faulthandler_timeout=2000 $(PYTEST)

test-neon:  ## Run the core's vector code as on ARM (needs gcc-aarch64-linux-gnu and qemu-user)
	rustup target add aarch64-unknown-linux-gnu
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$(AARCH64)-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/$(AARCH64) -E LD_LIBRARY_PATH=/usr/$(AARCH64)/lib" \
	$(CARGO) test --package bpe-tokenizer-core --target aarch64-unknown-linux-gnu --lib -- pretokenize:: cache:: merge:: decoder:: code_units::

# Stable Rust has the sanitizers, but hides their options. ThreadSanitizer must see the locks of std, and so compiles it:
# where its sources are missing, those of Debian, whose Rust takes the runtime of clang. Tests ask for too much memory.
sanitize: export RUSTC_BOOTSTRAP := 1
sanitize: export ASAN_OPTIONS := allocator_may_return_null=1
sanitize: export TSAN_OPTIONS := allocator_may_return_null=1
sanitize: SANITIZED = nice $(CARGO) test --package bpe-tokenizer-core --target $(shell rustc -vV | sed -n 's/host: //p')
sanitize: THREADS = PROPTEST_CASES=8 $(SANITIZED) -Zbuild-std --lib --test encode_batch --target-dir target/tsan
sanitize:  ## Run the core's tests under AddressSanitizer and ThreadSanitizer (rust-src of rustup, or root and debootstrap)
	RUSTFLAGS=-Zsanitizer=address $(SANITIZED) --lib --target-dir target/asan
	@if [ -d "$$(rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then \
	    RUSTFLAGS=-Zsanitizer=thread $(THREADS); \
	else $(PYTHON) tests/debian.py rust 'cargo clang libclang-rt-dev rust-src' env PATH=/usr/bin:/bin \
	    RUSTFLAGS='-Zsanitizer=thread -Zexternal-clangrt -Clinker=clang -Clink-arg=-fsanitize=thread' $(THREADS); fi

fuzz: $(VENV)/.built $(VENV)/.test $(VENV)/.fuzz $(CARGO_FUZZ)/bin/cargo-fuzz  ## Fuzz each target for MINUTES=2, two at a time; finds and counts at the end
	$(CARGO) test --manifest-path fuzz/Cargo.toml --target-dir target/fuzz-lint --lib
	PATH="$(abspath $(CARGO_FUZZ))/bin:$$PATH" PYTHONPATH=python $(BIN)/python fuzz/run.py --minutes $(MINUTES) $(FUZZ)

lock: $(VENV)/.created  ## Renew constraints.txt: the newest versions of all dependencies, for each Python and system
	$(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11.5 --no-annotate \
	    --custom-compile-command 'make lock' pyproject.toml --extra cli --group test --group peers --group lint --group docs \
	    --output-file constraints.txt

# The engines are the last: the others take seconds, and llama.cpp is compiled.
environments: $(TOKENIZERS1)/.installed $(RAY)/.installed $(SPARK)/.installed $(COLUMNS)/.installed $(ENGINES)/.installed

# The message that is turned off is about other programs than these versions.
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(DOCS)/.installed $(VENV)/.built $(VENV)/.test  ## Build the documentation site in build/site; a warning is an error
	PYTHONPATH=python $(BIN)/python -m docs.learn.notebooks
	$(DOCS)/bin/mkdocs build --strict
	PYTHONPATH=python $(BIN)/python -m bpe_tokenizer view --html build/site/piecewise.html --text ''
	@echo 'the site is in build/site: open build/site/index.html'

docs-serve: export NO_MKDOCS_2_WARNING := 1
docs-serve: $(DOCS)/.installed  ## Show the site at http://127.0.0.1:8000 while you write
	$(DOCS)/bin/mkdocs serve --watch python --watch docs/site --watch README.md

lint: $(VENV)/.built $(VENV)/.peers $(VENV)/.lint  ## Check format, lints, types and the extension's stub
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --manifest-path fuzz/Cargo.toml --target-dir target/fuzz-lint -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/stubtest bpe_tokenizer._core --mypy-config-file pyproject.toml

format: $(VENV)/.lint  ## Format everything
	$(CARGO) fmt --all
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

audit: $(VENV)/.created  ## Look for weaknesses, licences and sources of dependencies, and at the workflows (needs the network)
	command -v cargo-deny > /dev/null || $(CARGO) install --quiet --locked cargo-deny
	$(CARGO) deny check
	$(BIN)/uv tool run --quiet pip-audit --disable-pip --no-deps --requirement constraints.txt
	$(BIN)/uv tool run --quiet check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/uv tool run --quiet zizmor --quiet --offline --min-severity medium .github

release-check: $(PAGE_FILE) $(RELEASE)/.installed  ## Build what a release uploads in dist/, and check it (Linux, 15 minutes)
	rustup --quiet target add x86_64-unknown-linux-musl aarch64-unknown-linux-gnu
	PATH="$(abspath $(RELEASE))/bin:$$PATH" $(RELEASE)/bin/python tests/release.py $(CHECKS)

# The two crates that other Rust programs may use. Cargo builds each from its package, and refuses files that are not committed.
crates-package: PUBLIC := --package bpe-tokenizer-core --package bpe-tokenizer-formats
crates-package:  ## Package the crates core and formats for Rust programs: documents and examples checked
	$(CARGO) test --quiet --doc $(PUBLIC)
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --quiet --no-deps $(PUBLIC)
	@mkdir -p build/crates
	@echo '{"model": {"vocab": {"l": 0, "o": 1, "w": 2, "lo": 3}, "merges": [["l", "o"]]}}' > build/crates/tokenizer.json
	$(CARGO) run --quiet --package bpe-tokenizer-formats --example from_rust -- \
	    build/crates/tokenizer.json README.md build/crates/merges.txt
	$(CARGO) package --quiet $(PUBLIC)

# Installed from its archive, without the network, and imported.
javascript: $(VENV)/.built  ## Build, test and pack the page's core as a JavaScript package in build/npm (needs Node 20)
	@test -f $(WASM) || { echo 'the page has no core: make wasm builds it'; exit 1; }
	rm -rf build/npm && mkdir -p build/npm/trial
	PYTHONPATH=python $(BIN)/python javascript/build.py build/npm/package
	BPE_TOKENIZER_PACKAGE=$(abspath build/npm/package) node --test javascript/tests.mjs
	cd build/npm && npm pack --silent ./package
	cd build/npm/trial && echo '{"private": true}' > package.json && npm install --silent --offline --no-audit ../*.tgz \
	    && node --eval 'import("bpe-tokenizer").then(({ encodingNames }) => console.log("it knows", ...encodingNames))'

licences: $(VENV)/.created  ## Write THIRD-PARTY-LICENSES.txt: the licences of the crates that a wheel contains
	CARGO="$(CARGO)" $(BIN)/python tools/licences.py

interface: $(VENV)/.built  ## Write docs/api/names.md: every public name, which a test compares
	PYTHONPATH=python $(BIN)/python -m tools.interface

size:  ## Print the code lines of each room beside its budget
	@$(PYTHON) tools/size.py

bench: $(VENV)/.built $(BENCH)/.installed  ## Measure against other packages, in 15 minutes (needs BPE_TOKENIZER_FIXTURES)
	PYTHONPATH=python $(BENCH)/bin/python -m benchmarks $(ALL)
	PYTHONPATH=python $(BENCH)/bin/python -m benchmarks.training $(ALL)
	PYTHONPATH=python $(BENCH)/bin/python -m benchmarks.loading
	PYTHONPATH=python $(BENCH)/bin/python -m benchmarks.hostile
	PYTHONPATH=python $(BENCH)/bin/python -m benchmarks.page

bench-all:  ## More cases on more text, in about an hour
	$(MAKE) bench ALL=--all

bench-quick: $(VENV)/.built $(BENCH)/.installed  ## Some cases on 1 MB of each corpus, recorded in build/ only
	PYTHONPATH=python $(BENCH)/bin/python -m benchmarks --bytes 1000000 --records build/benchmarks $(BENCHMARKS)

bench-scripts: $(VENV)/.built $(BENCH)/.installed  ## Texts in nine scripts against gigatoken (needs Debian's apt-get)
	test -f build/scripts/kana.txt || $(BENCH)/bin/python -m benchmarks.scripts build/scripts
	PYTHONPATH=python $(BENCH)/bin/python -m benchmarks --corpus build/scripts/*.txt --bytes 800000 \
	    --records build/benchmarks --only gigatoken numpy $(BENCHMARKS)

bench-corpora: $(VENV)/.built $(BENCH_CORPORA)/.installed  ## Files to token files, against scripts; memory (CORPORA="--sizes 1e8 4e9"; needs 20 GB of disk)
	PYTHONPATH=python $(BENCH_CORPORA)/bin/python -m benchmarks.corpora $(CORPORA)

# Where npm cannot install them, the page's core runs alone.
bench-javascript: $(VENV)/.built  ## The page's core against tokenizers of npm, in Node (needs node, BPE_TOKENIZER_FIXTURES)
	$(BIN)/python -m benchmarks.javascript.texts build/javascript/texts
	@test -d build/javascript/node_modules || { echo '{"private": true}' > build/javascript/package.json; \
	    timeout 120 npm install --prefix build/javascript --no-audit --no-fund --silent $(NPM_PEERS) \
	    || echo 'npm has none of the other tokenizers here'; }
	node benchmarks/javascript/speed.mjs build/javascript/texts $(BPE_TOKENIZER_FIXTURES)/vocab build/javascript

instructions:  ## Count the instructions of encoding, decoding and training, and compare (needs valgrind)
	CARGO="$(CARGO)" $(PYTHON) -m benchmarks.instructions $(INSTRUCTIONS)

clean:  ## Remove everything that was built or installed here
	rm -rf $(VENV) target demo-output build dist .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find python course tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f python/bpe_tokenizer/_core.*.so python/bpe_tokenizer/_core.*.pyd $(WASM) $(PAGE_FILE)

# What is installed is recorded in stamp files; each rule runs again when a file it names has changed.

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'maturin>=1.9,<2' 'uv>=0.13'
	@touch $@

$(VENV)/.built: $(CRATES) pyproject.toml | $(VENV)/.created $(PAGE_FILE)
	@command -v $(CARGO) > /dev/null || { echo 'a Rust toolchain is needed: https://rustup.rs'; exit 1; }
	@echo 'building the extension (a minute or two the first time)'
	@MAKEFLAGS= $(INSTALL)
	@touch $@

# Without the target, everything works but the page, which says what is missing. The files appear at once, so that no
# reader sees a part of one.
$(PAGE_FILE): $(WASM) $(wildcard page/*.js page/*.css page/*.html page/*.py) $(wildcard javascript/read_tokenizer_json.js)
	@! test -f $(WASM) || $(PYTHON) page/build.py $@

$(WASM): $(WASM_CRATES)
	@if test -d "$$(rustc --print sysroot)/lib/rustlib/$(WASM_TARGET)" || rustup --quiet target add $(WASM_TARGET); then \
	    echo "building the page's core (a minute the first time)"; \
	    $(CARGO) build --quiet --profile wasm --target $(WASM_TARGET) --package bpe-tokenizer-wasm \
	    && cp target/$(WASM_TARGET)/wasm/bpe_tokenizer_wasm.wasm $@.new && chmod 644 $@.new && mv $@.new $@; \
	else \
	    echo "the page has no core: the Rust target $(WASM_TARGET) is missing and rustup cannot add it"; \
	fi

$(VENV)/.test $(VENV)/.peers $(VENV)/.lint: $(VENV)/.%: pyproject.toml constraints.txt | $(VENV)/.built
	$(UV) $(BIN)/python --constraints constraints.txt --group $*
	@touch $@

$(TOKENIZERS1)/.installed: | $(VENV)/.created
	$(NEW) $(TOKENIZERS1)
	$(UV) $(TOKENIZERS1)/bin/python tokenizers==1.0.0rc3
	@touch $@

# The version whose options fuzz/run.py uses.
$(CARGO_FUZZ)/bin/cargo-fuzz: | $(VENV)/.created
	$(CARGO) install --quiet --locked --root $(CARGO_FUZZ) cargo-fuzz --version 0.13.2

# Pythons without a release of atheris run the Rust targets alone.
$(VENV)/.fuzz: pyproject.toml | $(VENV)/.built
	$(PIP) --only-binary atheris 'atheris>=3' || echo 'atheris has no release for this Python'
	@touch $@

# torch first: 2.13.0 is the one for processors where it is available, others bring gigabytes of CUDA.
$(ENGINES)/.installed: Makefile | $(VENV)/.created
	$(NEW) $(ENGINES)
	$(UV) $(ENGINES)/bin/python torch==2.13.0
	echo 'set(CMAKE_UNITY_BUILD OFF)' > $(ENGINES)/ggml.cmake
	echo 'set(LLAMA_BUILD_COMMON OFF)' > $(ENGINES)/llama.cmake
	CMAKE_ARGS="$(LEAN_LLAMA_CPP)" \
	    $(UV) $(ENGINES)/bin/python \
	    llama-cpp-python==0.3.36 gguf transformers datasets 'mlx-lm[cpu]' openvino-genai \
	    $(TEST_PACKAGES) regex
	@touch $@

# The versions that docs/distributed.md speaks of.
$(RAY)/.installed: Makefile | $(VENV)/.created
	$(NEW) $(RAY)
	$(UV) $(RAY)/bin/python 'ray[data]==2.60.*' \
	    $(TEST_PACKAGES)
	@touch $@

$(SPARK)/.installed: Makefile | $(VENV)/.created
	$(NEW) $(SPARK)
	$(UV) $(SPARK)/bin/python 'pyspark[sql]==4.3.*' 'pandas<3' \
	    $(TEST_PACKAGES)
	@touch $@

# torch first, as for the engines. The wheel of megatron-core has its data sets compiled.
$(READERS)/.installed: Makefile | $(VENV)/.created
	$(NEW) $(READERS)
	$(UV) $(READERS)/bin/python torch==2.13.0
	$(UV) $(READERS)/bin/python 'megatron-core==0.16.*' polars pyarrow \
	    backports.zstd transformers trl litdata 'datatrove==0.10.*' \
	    brotli catalogue gcp-storage-emulator gcsfs moto[server] s3fs python-snappy torchvision zstd xxhash \
	    dataclass-extensions importlib-resources bettermap pandas google-cloud-storage $(TEST_PACKAGES)
	$(UV) $(READERS)/bin/python --no-deps mosaicml-streaming ai2-olmo-core cached-path
	@touch $@

# The versions that docs/columns.md speaks of.
$(COLUMNS)/.installed: Makefile | $(VENV)/.created
	$(NEW) $(COLUMNS)
	$(UV) $(COLUMNS)/bin/python 'polars==2.*' 'duckdb==2.*' 'pandas==3.*' \
	    'datasets==5.*' 'datatrove==0.10.*' orjson tokenizers $(TEST_PACKAGES)
	@touch $@

# Playwright 1.65 sends Firefox a command that no ESR of it knows yet.
$(PAGE)/.installed: Makefile | $(VENV)/.created
	$(NEW) $(PAGE)
	$(UV) $(PAGE)/bin/python playwright==1.64.* \
	    axe-playwright-python==0.1.8 starlette uvicorn $(TEST_PACKAGES)
	@touch $@

$(DOCS)/.installed: pyproject.toml constraints.txt | $(VENV)/.created
	$(NEW) $(DOCS)
	$(UV) $(DOCS)/bin/python --constraints constraints.txt --group docs
	@touch $@

$(RELEASE)/.installed: Makefile | $(VENV)/.created
	$(NEW) $(RELEASE)
	$(UV) $(RELEASE)/bin/python 'maturin>=1.9,<2' ziglang auditwheel uv
	@touch $@

$(LOWEST)/.installed: pyproject.toml | $(VENV)/.created
	$(NEW) $(LOWEST)
	$(UV) $(LOWEST)/bin/python --resolution lowest-direct -r pyproject.toml --extra cli --group test
	@touch $@

# These versions are what the benchmark pages show; quicktok is quicktok-v1 there, not quicktok.
$(BENCH)/.installed: Makefile | $(VENV)/.created
	$(NEW) $(BENCH)
	$(UV) $(BENCH)/bin/python tiktoken==0.14.0 tokenizers==0.23.3 \
	    fastokens==0.3.5 quicktok-v1==0.4.0 gigatoken==0.10.0 tokie==0.1.4 iree-tokenizer==0.3.0 \
	    kitoken==0.11.1 bpe-openai==0.1.4 rs-bpe==0.1.0 splintr-rs==0.22.0 toktok-rs==0.3.0 \
	    -r pyproject.toml --extra cli
	@touch $@

# tokenizers is the version that this transformers takes.
$(BENCH_CORPORA)/.installed: Makefile | $(VENV)/.created
	$(NEW) $(BENCH_CORPORA)
	$(UV) $(BENCH_CORPORA)/bin/python gigatoken==0.10.0 \
	    datasets==5.2.0 transformers==5.24.0 pyarrow==26.0.1 zstandard==0.25.0 backports.zstd orjson==3.13.0 \
	    -r pyproject.toml --extra cli
	@touch $@
