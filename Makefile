# ticketpress. `make` builds build/release/ticketpress; `make help` lists the rest.
#
# CC, CFLAGS, CPPFLAGS, LDFLAGS and LDLIBS belong to the caller and come last on every command line.
# What the project itself needs lives in project variables. Each VARIANT has its own folder.

VERSION := 0.1.0
VARIANT ?= release
VARIANTS := debug release asan tsan clang fuzz
PREFIX ?= /usr/local
BUILD := build/$(VARIANT)

ifeq ($(filter $(VARIANT),$(VARIANTS)),)
$(error VARIANT=$(VARIANT): must be one of $(VARIANTS))
endif
ifeq ($(origin CC),default)
CC := $(if $(filter clang fuzz,$(VARIANT)),clang,gcc)
endif

# ---- flags ---------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
	-Wwrite-strings -Wvla -Wformat=2 -Wundef -Wcast-align -Wcast-qual -Wconversion \
	-Wno-sign-conversion -Wnull-dereference -Wimplicit-fallthrough -Werror

# Control-flow protection exists on x86 only. The compiler is not asked: a make with nothing to do
# does not call it.
X86 := $(filter x86_64 i686,$(shell uname -m))
HARDENING := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong \
	$(if $(X86),-fcf-protection)
# The undefined behaviour sanitizer stops at its first report: a test must fail by it.
SANITIZE_ADDRESS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

COMPILE_debug := -Og -g3
COMPILE_release := -O2 -g $(HARDENING)
COMPILE_clang := $(COMPILE_release)
COMPILE_asan := -O1 -g $(SANITIZE_ADDRESS)
COMPILE_tsan := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
COMPILE_fuzz := -O1 -g $(SANITIZE_ADDRESS) -fsanitize=fuzzer-no-link
LINK_release := -Wl,-z,relro,-z,now
LINK_clang := $(LINK_release)
LINK_asan := $(SANITIZE_ADDRESS)
LINK_tsan := -fsanitize=thread
LINK_fuzz := $(SANITIZE_ADDRESS)

# Gates and hung tasks for tests are compiled in where this is defined: never in a release.
TEST_BUILD := $(if $(filter debug asan tsan fuzz,$(VARIANT)),-DTICKETPRESS_TEST_BUILD)

# Asked once, and only by a rule that compiles or links: `make help` and `make deps` work on a bare
# machine. Headers of libraries are system headers, so that our warnings are not about them.
PACKAGES := libqrencode libcrypto jansson harfbuzz harfbuzz-subset icu-uc icu-i18n lcms2 libdeflate \
	libmicrohttpd libpng libjpeg
ask = $(if $(shell pkg-config --exists $(1) 2>/dev/null && echo yes),$(shell pkg-config $(2) $(1)),\
	$(error pkg-config does not know all of: $(1); run `make deps`))
PACKAGES_CFLAGS = $(eval PACKAGES_CFLAGS := $$(patsubst -I%,-isystem %,\
	$$(call ask,$(PACKAGES),--cflags)))$(PACKAGES_CFLAGS)
PACKAGES_LIBS = $(eval PACKAGES_LIBS := $$(call ask,$(PACKAGES),--libs))$(PACKAGES_LIBS)
CRITERION_LIBS = $(eval CRITERION_LIBS := $$(call ask,criterion,--libs))$(CRITERION_LIBS)

TP_CPPFLAGS := -D_GNU_SOURCE -I. -DTICKETPRESS_VERSION='"$(VERSION)"' $(TEST_BUILD)
TP_CFLAGS := -std=c17 -pthread -fPIE $(WARNINGS) $(COMPILE_$(VARIANT))
TP_LDFLAGS := -pthread -pie -Wl,--as-needed $(LINK_$(VARIANT))
# libharu has no pkg-config file.
TP_LIBS = -lhpdf $(PACKAGES_LIBS) -lm

COMPILE = $(CC) $(TP_CPPFLAGS) $(TP_CFLAGS) $(PACKAGES_CFLAGS) -MMD -MP $(CPPFLAGS) $(CFLAGS)
TIDY_FLAGS = $(TP_CPPFLAGS) -std=c17 $(PACKAGES_CFLAGS)
LINK = $(CC) $(TP_LDFLAGS) $(CFLAGS) $(LDFLAGS)

# ---- files ---------------------------------------------------------------------------------------

PRODUCT_C := $(wildcard domain/*.c workers/*.c service/*.c)
UNIT_C := $(wildcard tests/domain/*.c tests/workers/*.c tests/service/*.c)
SUPPORT_C := $(wildcard tests/support/*.c)
RACE_C := $(wildcard tests/race/*.c)
MEMORY_C := $(wildcard tests/memory/*.c)
FUZZ_C := $(filter-out tests/fuzz/replay_main.c,$(wildcard tests/fuzz/*.c))
BENCH_SHARED_C := $(wildcard tests/bench/bench_*.c)
BENCH_C := $(filter-out $(BENCH_SHARED_C),$(wildcard tests/bench/*.c))
ALL_C := $(PRODUCT_C) $(UNIT_C) $(SUPPORT_C) $(RACE_C) $(MEMORY_C) \
	$(wildcard tests/fuzz/*.c tests/bench/*.c tests/e2e/shims/*.c)
ALL_H := $(wildcard domain/*.h workers/*.h service/*.h tests/*/*.h tests/e2e/shims/*.h)

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
programs = $(patsubst tests/%.c,$(BUILD)/%,$(1))

PROGRAM := $(BUILD)/ticketpress
LIBRARY := $(BUILD)/libticketpress.a
SUPPORT := $(BUILD)/libsupport.a
UNIT := $(BUILD)/unit
RACE := $(call programs,$(RACE_C))
MEMORY := $(if $(MEMORY_C),$(BUILD)/memory/out_of_memory)
FUZZ := $(call programs,$(FUZZ_C))
BENCH := $(call programs,$(BENCH_C))

# tests/support/failing_memory.c stands between our objects and the allocator.
ifneq ($(filter tests/support/failing_memory.c,$(SUPPORT_C)),)
WRAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
endif
# tests/support/held_calls.c stands where the press does its work.
ifneq ($(filter tests/support/held_calls.c,$(SUPPORT_C)),)
WRAP += -Wl,--wrap=qr_encode,--wrap=pdf_write
endif

# The program finds its data at ../share/ticketpress from where it lies, built or installed.
DATA := build/share/ticketpress

# ---- rules ---------------------------------------------------------------------------------------

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.PHONY: all help deps demo check check-long test asan tsan race e2e lint format fuzz bench \
	bench-opening-night install clean FORCE program unit race-programs memory-program \
	fuzz-programs bench-programs test-programs print-%

all: program
program: $(PROGRAM) $(DATA)
unit: $(UNIT) $(DATA)
race-programs: $(RACE) $(DATA)
memory-program: $(MEMORY) $(DATA)
fuzz-programs: $(FUZZ) $(DATA)
bench-programs: $(BENCH) $(DATA)
test-programs: program unit race-programs memory-program bench-programs

help: ## this list
	@echo 'ticketpress: make [VARIANT=debug|release|asan|tsan] [TARGET]'
	@echo '  all                  build $(PROGRAM) (the default)'
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F '\t' '{ printf "%-22s %s\n", $$1, $$2 }'

deps: ## install the missing packages of deploy/debian-packages.txt
	@deploy/install-packages.sh build run test

demo: deps ## 500 tickets into tickets.pdf, checked
	@$(MAKE) --no-print-directory VARIANT=release program
	@deploy/demo.sh build/release/ticketpress

check: deps ## every test and check; last line: N passed, N failed
	+@tests/run

check-long: deps ## check, then fuzzing, repeated races, more failing memory and valgrind
	+@tests/run --long

test: ## unit tests, debug build
	+@tests/run unit-debug

asan: ## unit tests and race programs under the address and undefined behaviour sanitizers
	+@tests/run unit-asan race-asan fuzz-replay

tsan: race ## the same as race

race: ## race programs under the thread sanitizer
	+@tests/run race-tsan

e2e: ## whole-program tests of the release build
	+@tests/run e2e

lint: ## format, cppcheck, clang-tidy, and everything built by gcc and by clang
	+@tests/run lint

format: ## let clang-format lay out all sources
	clang-format -i $(ALL_C) $(ALL_H)

fuzz: ## build the fuzz targets with clang into build/fuzz/
	@$(MAKE) --no-print-directory VARIANT=fuzz fuzz-programs

bench: ## time against the floor program and the obvious program
	@$(MAKE) --no-print-directory VARIANT=release program bench-programs
	@python3 tests/bench/bench.py

bench-opening-night: ## /healthz while 500-ticket batches keep every core busy
	@$(MAKE) --no-print-directory VARIANT=release program
	@python3 tests/bench/opening_night.py build/release/ticketpress

install: program ## copy program and data below $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/ticketpress
	install -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/ticketpress
	cp -R service/data/. $(DESTDIR)$(PREFIX)/share/ticketpress/
	install -m 644 LICENSE $(DESTDIR)$(PREFIX)/share/ticketpress/LICENSE

clean: ## remove build/ and what make demo left
	rm -rf build tickets.pdf tickets-[0-9]*.png

print-%: ## the value of a variable of this file
	@:$(info $($*))

# Objects depend on how they are compiled: other flags build them anew, the same flags never do.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(CC) $(TP_CPPFLAGS) $(TP_CFLAGS) $(CPPFLAGS) $(CFLAGS))' \
		| cmp -s - $@ || printf '%s\n' \
		'$(subst ','\'',$(CC) $(TP_CPPFLAGS) $(TP_CFLAGS) $(CPPFLAGS) $(CFLAGS))' > $@

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(COMPILE) -c -o $@ $<

$(LIBRARY): $(call objects,$(filter-out service/main.c,$(PRODUCT_C)))
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

$(SUPPORT): $(call objects,$(SUPPORT_C))
	@mkdir -p $(@D)
	@rm -f $@
	ar rcs $@ $^

$(PROGRAM): $(call objects,service/main.c) $(LIBRARY)
	$(LINK) -o $@ $^ $(TP_LIBS) $(LDLIBS)

$(UNIT): $(call objects,$(UNIT_C) $(SUPPORT_C)) $(LIBRARY)
	$(LINK) $(WRAP) -o $@ $^ $(TP_LIBS) $(CRITERION_LIBS) $(LDLIBS)

$(BENCH): $(call objects,$(BENCH_SHARED_C))
$(RACE) $(BENCH): $(BUILD)/%: $(BUILD)/tests/%.o $(SUPPORT) $(LIBRARY)
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(TP_LIBS) $(LDLIBS)

# Its own allocator must stand before that of the sanitizer, which is told by symbols of its own.
$(MEMORY): $(call objects,$(MEMORY_C)) $(LIBRARY)
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(TP_LIBS) $(LDLIBS)

# With VARIANT=fuzz the fuzzer drives the target; elsewhere a plain main replays files.
FUZZ_DRIVER := $(if $(filter fuzz,$(VARIANT)),,$(call objects,tests/fuzz/replay_main.c))
$(FUZZ): $(BUILD)/%: $(BUILD)/tests/%.o $(FUZZ_DRIVER) $(SUPPORT) $(LIBRARY)
	@mkdir -p $(@D)
	$(LINK) $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer) -o $@ $^ $(TP_LIBS) $(LDLIBS)

$(DATA):
	@mkdir -p $(@D)
	ln -sfn ../../service/data $@

-include $(patsubst %.c,$(BUILD)/%.d,$(ALL_C))
