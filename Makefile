# The front door. Everything is built by CMake; these are the few commands a person types. Re-running any of them is quick, and
# needs no network when no package is missing.
#
#   make demo       install what is missing, build a release, diagnose a bundled real failure
#   make test       install what is missing, build with sanitizers, run every test
#   make build      the release programs, in build/release/
#   make bench      measure against the yardsticks; appends to bench/results.csv
#   make scorecard  run all labelled cases; writes docs/scorecard.md
#   make fuzz       hunt with libFuzzer for FUZZ_SECONDS each (60)
#   make install    to $(DESTDIR)$(prefix); make uninstall takes it away again
#   make clean      remove build/
#   make help       this list

prefix ?= /usr/local
bindir ?= $(prefix)/bin
includedir ?= $(prefix)/include
libdir ?= $(prefix)/lib
mandir ?= $(prefix)/share/man
datadir ?= $(prefix)/share
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 60
PROGRAMS = faultrank
LIBRARIES = fr_numerics

# Make variables of ours are no business of the makefiles that CMake writes.
MAKEOVERRIDES =
MAKEFLAGS += --no-print-directory
unexport DESTDIR prefix bindir includedir libdir mandir datadir

# Done once. What is looked for is what CMake writes last: its cache also lies there after a configure that failed.
configure = test -f build/$(1)/CMakeFiles/TargetDirectories.txt || cmake --preset $(1)

.PHONY: all demo test build bench scorecard fuzz install uninstall clean help
all: build

build:
	@tools/install-packages build
	@$(call configure,release)
	@cmake --build build/release -j $(JOBS) --target $(PROGRAMS) $(LIBRARIES)

demo: build
	@build/release/faultrank diagnose examples/demo

test:
	@tools/install-packages build test
	@$(call configure,dev)
	@cmake --build build/dev -j $(JOBS)
	@ctest --test-dir build/dev/tests --output-on-failure --no-tests=error -j $(JOBS)

bench:
	@tools/install-packages build bench
	@$(call configure,release)
	@cmake --build build/release -j $(JOBS) --target $(PROGRAMS) yardsticks
	@bench/run

scorecard: build
	@tools/install-packages test
	@python3 tools/scorecard.py --bin build/release/faultrank --out docs/scorecard.md --reliability src/incident/reliability.def $(dir $(wildcard tests/cases/*/labels.jsonl))

fuzz:
	@tools/install-packages build fuzz
	@$(call configure,fuzz)
	@cmake --build build/fuzz -j $(JOBS) --target fuzzers
	@tools/fuzz build/fuzz/tests/fuzz $(FUZZ_SECONDS)

# What is installed, as pairs "file mode folder"; uninstall removes exactly these.
INSTALLED = \
	build/release/faultrank:755:$(bindir)/faultrank \
	include/faultrank/numerics.h:644:$(includedir)/faultrank/numerics.h \
	build/release/src/numerics/libfaultrank-numerics.a:644:$(libdir)/libfaultrank-numerics.a \
	build/release/faultrank-numerics.pc:644:$(libdir)/pkgconfig/faultrank-numerics.pc \
	$(foreach m,$(wildcard man/*.1),$(m):644:$(mandir)/man1/$(notdir $(m))) \
	$(foreach c,$(wildcard completions/faultrank.bash),$(c):644:$(datadir)/bash-completion/completions/faultrank) \
	$(foreach c,$(wildcard completions/_faultrank),$(c):644:$(datadir)/zsh/site-functions/_faultrank) \
	$(foreach c,$(wildcard completions/faultrank.fish),$(c):644:$(datadir)/fish/vendor_completions.d/faultrank.fish) \
	$(foreach s,$(wildcard schema/*.json),$(s):644:$(datadir)/faultrank/$(notdir $(s)))

# The one installed file that knows where it lies.
build/release/faultrank-numerics.pc: build
	@sed -e 's|@prefix@|$(prefix)|' -e 's|@includedir@|$(includedir)|' -e 's|@libdir@|$(libdir)|' \
	    -e "s|@version@|$$(sed -n 's/^project(faultrank VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)|" \
	    src/numerics/faultrank-numerics.pc.in > $@

install: build build/release/faultrank-numerics.pc
	@for item in $(INSTALLED); do \
	    from=$${item%%:*}; rest=$${item#*:}; mode=$${rest%%:*}; to="$(DESTDIR)$${rest#*:}"; \
	    install -D -m $$mode "$$from" "$$to" && echo "installed $$to" || exit 1; \
	done

uninstall:
	@for item in $(INSTALLED); do \
	    rest=$${item#*:}; to="$(DESTDIR)$${rest#*:}"; \
	    rm -f "$$to" && echo "removed $$to" || exit 1; \
	done

clean:
	@rm -rf build

help:
	@sed -n 's/^#   //p' Makefile
