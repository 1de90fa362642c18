//! Random sequences of every operation and of times in which nobody served, against the rules written down twice: in SQL and in `model/`.

mod clock;
mod joining;
mod play;
mod rules;
mod state;
mod steps;

use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::support::Database;

/// Unless PROPTEST_CASES says otherwise: some fifteen seconds.
const CASES: u32 = 250;

#[test]
fn every_answer_and_every_state_are_those_of_the_rules() {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let mut config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    if !asked {
        config.cases = CASES;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(Database::new());
    let outcome = TestRunner::new(config).run(&steps::steps(), |steps| {
        runtime
            .block_on(play::against_both(&database, &steps))
            .map_err(TestCaseError::fail)
    });
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
}
