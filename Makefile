# The front door. Each target prints the commands that it runs.
MODEL ?= tiny
PROMPT ?= Once upon a time
ARGS ?= --stats
# By the environment, so that no shell and no make reads what they say.
override MODEL := $(value MODEL)
override PROMPT := $(value PROMPT)
export MODEL PROMPT
RESULTS ?= results.jsonl
PREFIX ?= /usr/local
SOAK_SECONDS ?= 300
DEVELOPER ?= OFF
# One more than processors, because many tests wait.
TESTS_AT_ONCE = $(shell expr 1 + $$(nproc))
BUILD := build/release
LATTE := $(BUILD)/latte
INSTALL := @tools/install_packages.sh

XGRAMMAR := build/xgrammar
# 0: `make build` does not fetch xgrammar
GRAMMAR ?= 1

.PHONY: help setup tests build compile packaging wheel tarball deb package-test grammar run test page-test acceptance acceptance-short bench cuda fuzz soak sanitize sanitize-dev sanitize-tsan lint fmt install clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 20

# DEVELOPER=ON: a compiler's warning is an error.
setup:
	$(INSTALL) build
	@DEVELOPER=$(DEVELOPER) tools/configure.sh release

# xgrammar comes from PyPI. A machine that does not reach it gets everything else.
build:  ## install what is missing, configure, build: build/release/latte and the library; with xgrammar if PyPI is there
	@test "$(GRAMMAR)" = 0 || { tools/install_packages.sh grammar && tools/get_xgrammar.sh $(XGRAMMAR); } || \
	  echo "xgrammar is not there: this build answers without JSON schemas and grammars. make grammar tries again." >&2
	@$(MAKE) --no-print-directory compile

compile: setup
	@cmake --build --preset release --target latte latte_shared

grammar:  ## the same, and an error if xgrammar cannot be fetched (PyPI): answers can be made to match a JSON schema or a grammar
	$(INSTALL) build grammar
	tools/get_xgrammar.sh $(XGRAMMAR)
	@$(MAKE) --no-print-directory compile

run: MINUTES = $(shell expr 1 + 20 / $$(nproc))
run:  ## write a story with MODEL (default: tiny); make run MODEL=… PROMPT=… ARGS=…
	@test -x $(LATTE) || printf '%s\n' "Latte: first the Debian packages that it needs, where they are missing;" \
	  "then the compiler, for about $(MINUTES) minutes on the $$(nproc) processors of this machine, once;" \
	  "then a story by models/tiny, in a second."
	@$(MAKE) --no-print-directory setup
	@cmake --build --preset release --target latte
	$(LATTE) run "$$MODEL" -p "$$PROMPT" --seed 0 $(ARGS)
	@echo "Latte: $(LATTE) works; docs/start.md leads to a real model and a server." >&2
	@test -f $(XGRAMMAR)/installed || \
	  echo "Answers by JSON schema or grammar need xgrammar: make build fetches it from PyPI and builds again, in a few minutes." >&2

tests:
	$(INSTALL) build mpi test grammar
	@tools/get_xgrammar.sh $(XGRAMMAR) || echo "xgrammar is not there: the tests of constrained answers are left out" >&2
	@DEVELOPER=$(DEVELOPER) tools/configure.sh release -DLATTE_BUILD_TESTS=ON
	@cmake --build --preset release

test: tests  ## build and run every test that needs no GPU; only packages and xgrammar come over the network
	ctest --preset release -j $(TESTS_AT_ONCE)

page-test: tests  ## the web page of latte serve in Chromium, which it installs (130 MB)
	$(INSTALL) browser
	ctest --preset release -R e2e_page_

# What packages and their tests need of the system; xgrammar is part of every package.
packaging:
	$(INSTALL) build grammar package
	tools/get_xgrammar.sh $(XGRAMMAR)

wheel: packaging  ## dist/latte_mla-*.whl for pip: program, library, Python package, tiny (PyPI for its tools)
	packaging/make_wheel.py dist

tarball: wheel  ## dist/latte-*.tar.gz, to be unpacked anywhere, with SHA256SUMS and the list of its parts
	packaging/make_tarball.py dist

deb: packaging  ## dist/deb/*.deb for this Debian or Ubuntu: latte, liblatte0.x, liblatte-dev
	packaging/make_debs.sh dist/deb
	lintian --fail-on error dist/deb/*.deb

package-test: tarball deb  ## install all packages in clean roots of Debian 12 (mmdebstrap, as root) and use them there
	packaging/try_packages.py build/roots --wheel dist/latte_mla-$$(cat VERSION)-*.whl --debs dist/deb \
	  --tarball dist/latte-$$(cat VERSION)-*.tar.gz

acceptance: grammar  ## official clients, suites and attacks against latte serve (PyPI; 15 minutes; results in build/acceptance)
	$(INSTALL) acceptance
	tests/acceptance/run.py $(LATTE) build/acceptance

acceptance-short: grammar  ## its first parts, in at most 5 minutes
	$(INSTALL) acceptance
	tests/acceptance/run.py --short $(LATTE) build/acceptance

bench: build  ## every measurement that the documents quote, into RESULTS (results.jsonl)
	bench/run.py $(LATTE) $(RESULTS)

cuda:  ## build/cuda/latte with kernels for NVIDIA GPUs; needs nvcc 13.0
	$(INSTALL) build
	@DEVELOPER=$(DEVELOPER) tools/configure.sh cuda
	@cmake --build --preset cuda --target latte

fuzz:  ## feed broken files to every reader of files, FUZZ_SECONDS (30) each
	$(INSTALL) build fuzz grammar
	@tools/get_xgrammar.sh $(XGRAMMAR) || echo "xgrammar is not there: its target is left out" >&2
	@tools/configure.sh fuzz
	@cmake --build --preset fuzz
	fuzz/run.sh

soak: tests  ## random requests to one engine, SOAK_SECONDS (300) over each model, and to a server with two groups of ranks; a million requests to one server; then every command under tight limits
	$(BUILD)/tests/soak/soak fake 1 $(SOAK_SECONDS)
	$(BUILD)/tests/soak/soak models/tiny 1 $(SOAK_SECONDS)
	tests/soak/serve_soak.py $(LATTE) $(SOAK_SECONDS)
	tests/soak/requests_soak.py $(LATTE)
	tests/limits/sweep.py --long $(LATTE) $(BUILD)/tests/limits/limits_embedder $(BUILD)/tests/limits/libfew_threads.so

sanitize: sanitize-dev sanitize-tsan  ## the unit tests under AddressSanitizer with UBSan, then under ThreadSanitizer (an hour or two)

sanitize-dev sanitize-tsan: sanitize-%:
	$(INSTALL) build mpi test grammar
	@tools/get_xgrammar.sh $(XGRAMMAR) || echo "xgrammar is not there: the tests of constrained answers are left out" >&2
	@tools/configure.sh $* -DLATTE_BUILD_TESTS=ON
	@cmake --build --preset $*
	ctest --preset $* -j 2 -LE 'e2e|conformance|soak'

lint:  ## formatting, layering, documentation
	$(INSTALL) lint
	tools/lint.sh

fmt:  ## format every source file in place
	$(INSTALL) lint
	git ls-files '*.h' '*.cc' '*.c' '*.cuh' '*.cu' | xargs clang-format -i

install: build  ## binary, library, headers and model under PREFIX (default /usr/local)
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:  ## remove everything that was built
	rm -rf build
