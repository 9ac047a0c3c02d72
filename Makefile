# A thin front for CMake; `cmake --list-presets` shows what is behind it.
SHELL := /bin/sh
PREFIX ?= /usr/local
PRESET ?= release
BUILD = $(if $(filter release,$(PRESET)),build,build/$(PRESET))

.PHONY: all ready setup test torture check demo bench eval eval-races eval-repeatability eval-fixes eval-repair eval-balance eval-detect eval-bisect eval-factors eval-orders eval-suite rank format install clean
.NOTPARALLEL:

all: ready
	@mkdir -p $(BUILD)
	@cmake --preset $(PRESET) >$(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log; exit 1; }
	@cmake --build --preset $(PRESET) $(TARGETS)

# Only `make setup`, `make demo` and `make test` install packages.
ready:
	@tools/setup --check

setup:
	@tools/setup

check:
	tools/check-format
	tools/check-includes
	tools/check-includes_test

# A compiler beside them would make tests late that look for lateness: first all is built.
test: setup check all
	@mkdir -p build/asan
	@$(MAKE) --no-print-directory all PRESET=asan >build/asan/build.log 2>&1 || { cat build/asan/build.log; exit 1; }
	ctest --preset release
	ctest --preset asan

torture: TARGETS = --target all torture_suites
torture: all
	ctest --preset torture

demo: TARGETS = --target unflake zoo_late_delivery zoo_mail_alert
demo: setup all
	tools/demo

bench: all
	@cmake --build --preset $(PRESET) --target bench_programs
	bench/run

# How good all of it is, on the zoo: about 80 minutes. EVAL="--only NAME" and the like narrow down the first
# part; EVAL=--strategies compares strategies, too. `make eval-balance` takes two hours more, and is apart.
eval: TARGETS = --target unflake zoo interleavings_zoo layers_zoo unsteady_zoo evaluate
eval: all
	@failed=0; \
	build/bin/evaluate $(EVAL) || failed=1; \
	for part in suite repeatability races factors orders bisect fixes repair detect; do \
	  $(MAKE) --no-print-directory eval-$$part || failed=1; \
	done; exit $$failed

eval-repeatability: TARGETS = --target evaluate_repeatability
eval-repeatability: all
	build/bin/evaluate_repeatability $(EVAL_REPEATABILITY)

eval-races: TARGETS = --target evaluate_races
eval-races: all
	build/bin/evaluate_races $(EVAL_RACES)

eval-fixes: TARGETS = --target evaluate_fixes
eval-fixes: all
	build/bin/evaluate_fixes $(EVAL_FIXES)

eval-repair: TARGETS = --target evaluate_repair
eval-repair: all
	build/bin/evaluate_repair --compare flakesync $(EVAL_REPAIR)

eval-factors: TARGETS = --target unflake evaluate_factors
eval-factors: all
	build/bin/evaluate_factors $(EVAL_FACTORS)

eval-orders: TARGETS = --target unflake evaluate_orders
eval-orders: all
	build/bin/evaluate_orders $(EVAL_ORDERS)

eval-suite: TARGETS = --target unflake evaluate_suite
eval-suite: all
	build/bin/evaluate_suite $(EVAL_SUITE)

eval-balance: TARGETS = --target unflake timed_zoo evaluate_balance
eval-balance: all
	build/bin/evaluate_balance $(EVAL_BALANCE)

# Replays failure rates that somebody has measured: a CSV file with project,test,passes,failures,seconds.
RATES ?= ../shared/data/flakeflagger-rates.csv
eval-detect: TARGETS = --target evaluate_detect
eval-detect: all
	build/bin/evaluate_detect --rates $(RATES) $(EVAL_DETECT)

eval-bisect: TARGETS = --target evaluate_bisect
eval-bisect: all
	build/bin/evaluate_bisect $(EVAL_BISECT)

rank: TARGETS = --target unflake zoo interleavings_zoo layers_zoo unsteady_zoo evaluate rank_orders
# Which order of delays is best for the strategy `guided`: some 20 minutes.
rank: all
	build/bin/rank_orders record
	build/bin/rank_orders rank --out build/eval/orders.md

format:
	tools/check-format --fix

install: all
	cmake --install $(BUILD) --prefix $(PREFIX)

clean:
	rm -rf build
