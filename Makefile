# The front door. Each target prints the commands that it runs.
MODEL ?= tiny
PROMPT ?= Once upon a time
ARGS ?= --stats
RESULTS ?= results.jsonl
PREFIX ?= /usr/local
SOAK_SECONDS ?= 300
BUILD := build/release
LATTE := $(BUILD)/latte

.PHONY: help setup build run test test-all bench fuzz soak lint fmt install clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 20

setup:
	@tools/install_packages.sh
	@test -f $(BUILD)/build.ninja || cmake --preset release

build: setup  ## install what is missing, configure, build: build/release/latte
	@cmake --build --preset release

run: build  ## write a story with MODEL (default: tiny); make run MODEL=… PROMPT=… ARGS=…
	$(LATTE) run $(MODEL) -p "$(PROMPT)" $(ARGS)

test: build  ## every test that needs neither GPU nor network
	ctest --preset release -j 2

bench: build  ## every measurement that the documents quote, into RESULTS (results.jsonl)
	bench/run.py $(LATTE) $(RESULTS)

fuzz: setup  ## feed broken files to every reader of files, FUZZ_SECONDS (30) each
	@test -f build/fuzz/build.ninja || cmake --preset fuzz
	@cmake --build --preset fuzz
	fuzz/run.sh

soak: build  ## random requests to one engine, SOAK_SECONDS (300) over each model; then every command under tight limits
	$(BUILD)/tests/soak/soak fake 1 $(SOAK_SECONDS)
	$(BUILD)/tests/soak/soak models/tiny 1 $(SOAK_SECONDS)
	tests/limits/sweep.py --long $(LATTE) $(BUILD)/tests/limits/limits_embedder $(BUILD)/tests/limits/libfew_threads.so

lint: setup  ## formatting, layering, documentation
	tools/lint.sh

fmt:  ## format every source file in place
	git ls-files '*.h' '*.cc' '*.c' | xargs clang-format -i

install: build  ## binary, library, headers and model under PREFIX (default /usr/local)
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:  ## remove everything that was built
	rm -rf build
