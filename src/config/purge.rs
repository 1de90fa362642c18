//! Settings of forgetting: how long closed history is kept, and how often the old is purged.

use std::time::Duration;

use clap::Args;

/// The schedule of the purge.
#[derive(Debug, Clone, Args)]
pub struct PurgeArgs {
    /// How long closed history is kept, like 30d or 12h; for ever if left out
    #[arg(long = "purge-older-than", env = "LEASEHOLD_PURGE_OLDER_THAN",
          value_parser = |text: &str| age("LEASEHOLD_PURGE_OLDER_THAN", text))]
    pub older_than: Option<Duration>,

    /// How often older history is looked for, like 1h
    #[arg(long = "purge-interval", env = "LEASEHOLD_PURGE_INTERVAL", default_value = "1h",
          value_parser = |text: &str| age("LEASEHOLD_PURGE_INTERVAL", text))]
    pub interval: Duration,
}

/// The longest age: a hundred years.
const MAX_SECONDS: u64 = 100 * 365 * 24 * 60 * 60;

/// A whole number and a unit: `90s`, `30m`, `12h`, `30d`.
///
/// # Errors
/// Names the setting and what is allowed.
pub fn age(setting: &str, text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(60 * 60),
        "d" => Some(24 * 60 * 60),
        _ => None,
    };
    number
        .parse::<u64>()
        .ok()
        .zip(unit)
        .and_then(|(number, unit)| number.checked_mul(unit))
        .filter(|seconds| (1..=MAX_SECONDS).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| {
            format!("{setting} must be a whole number with s, m, h or d, like 30d, and at most 100 years")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_with_a_unit() {
        assert_eq!(age("x", "30d"), Ok(Duration::from_secs(2_592_000)));
        assert_eq!(age("x", "90s"), Ok(Duration::from_secs(90)));
        for wrong in [
            "",
            "30",
            "d",
            "-1d",
            "1.5h",
            "0s",
            "30 d",
            "1w",
            "99999999999999999999d",
            "40000d",
        ] {
            assert!(age("x", wrong).is_err(), "{wrong:?}");
        }
    }
}
