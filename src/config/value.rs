//! How values are written: whole numbers and durations, within a range that the error names.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use humantime::{format_duration, parse_duration};
use ipnet::IpNet;

/// From a second to a hundred years: for what is not a matter of a request.
pub const AGES: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A whole number within a range; the error names the variable and what is allowed.
pub(super) fn whole<N: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static>(
    variable: &'static str,
    range: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static {
    move |text| {
        text.parse()
            .ok()
            .filter(|n| range.contains(n))
            .ok_or_else(|| {
                format!(
                    "{variable} must be a whole number from {} to {}",
                    range.start(),
                    range.end()
                )
            })
    }
}

/// A duration like `250ms`, `15s`, `1h` or `30d` within a range; where the setting's name ends in
/// `_MS`, a plain number is one of milliseconds.
pub fn duration(
    setting: &'static str,
    range: RangeInclusive<Duration>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| {
        // Zero needs no unit.
        let plain = text.parse().ok();
        let plain = plain.filter(|&n| n == 0 || setting.ends_with("_MS"));
        plain
            .map(Duration::from_millis)
            .or_else(|| parse_duration(text).ok())
            .filter(|duration| range.contains(duration))
            .ok_or_else(|| {
                format!(
                    "{setting} must be a duration from {} to {}, like 250ms, 15s, 1h or 30d",
                    format_duration(*range.start()),
                    format_duration(*range.end())
                )
            })
    }
}

/// A network, or one address; `None` for what an empty variable leaves.
pub(super) fn network(
    variable: &'static str,
    examples: &'static str,
) -> impl Fn(&str) -> Result<Option<IpNet>, String> + Clone + Send + Sync + 'static {
    move |text| {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let network = text
            .parse()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network
            .map(Some)
            .map_err(|_| format!("{variable} must be addresses or networks, like {examples}"))
    }
}

/// [`duration`] between so many milliseconds.
pub(super) fn millis(
    setting: &'static str,
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    let range = Duration::from_millis(*range.start())..=Duration::from_millis(*range.end());
    duration(setting, range)
}

/// A switch; the error names the variable.
pub(super) fn on_or_off(
    variable: &'static str,
) -> impl Fn(&str) -> Result<bool, String> + Clone + Send + Sync + 'static {
    move |text| match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{variable} must be on or off")),
    }
}

/// So many milliseconds, where the range of the setting keeps them far below the largest number.
pub(super) fn as_millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_with_a_unit() {
        let read = millis("LEASEHOLD_X", 1..=u64::MAX);
        assert_eq!(read("30d"), Ok(Duration::from_secs(2_592_000)));
        assert_eq!(read("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(read("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "30", "d", "-1d", "0s", "1 fortnight", "s15"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_plain_number_is_one_of_milliseconds_where_the_name_says_so() {
        let read = millis("LEASEHOLD_X_MS", 1_000..=86_400_000);
        assert_eq!(read("15000"), Ok(Duration::from_secs(15)));
        assert_eq!(read("15s"), Ok(Duration::from_secs(15)));
        let refused = read("999").unwrap_err();
        assert!(refused.contains("LEASEHOLD_X_MS"), "{refused}");
        assert!(refused.contains("from 1s to 1day"), "{refused}");
    }
}
