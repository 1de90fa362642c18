# The macros that check queries read .sqlx: compiling needs no database, and a
# DATABASE_URL that happens to be set is not asked.
export SQLX_OFFLINE := true

.DEFAULT_GOAL := help
.PHONY: help run test test-matrix chaos fmt sqlx schema check-api bench bench-scale release clean

help: ## Print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Start the service with a private PostgreSQL; data lasts across runs
	@scripts/install-postgres
	cargo run --locked -- dev

test: ## Run every check and every test, as CI does
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	scripts/check-sqlx
	cargo test --locked --workspace
	scripts/test-clients
	scripts/test-browser
	scripts/check-api 60
	scripts/check-deploy
	scripts/check-exports
	scripts/check-dependencies
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

test-matrix: ## Run the tests on PostgreSQL 14, 16, 17 and 18
	scripts/test-matrix

chaos: ## Let everything fail for ten minutes, or CHAOS_SECONDS; CHAOS_SEED repeats a run
	cargo test --locked --test it chaos:: -- --ignored --nocapture --test-threads=1

fmt: ## Format the code
	cargo fmt

sqlx: ## Regenerate .sqlx after a change of a query or a migration
	scripts/check-sqlx --write

schema: ## Regenerate docs/schema.sql after a change of a migration
	LEASEHOLD_ADOPT=1 cargo test --locked --test it schema

check-api: ## Ask the service whatever its OpenAPI document allows, for a minute
	scripts/check-api

bench: ## Measure, in under ten minutes; see benches/
	benches/run

bench-scale: ## Measure a long history, many rooms and several instances
	benches/run --scale

release: ## Build what a release consists of: program, SBOM, migrations, checksums
	scripts/release

clean: ## Remove what was built
	cargo clean
