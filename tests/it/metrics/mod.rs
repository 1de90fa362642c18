//! What those who watch the service can see of it.

mod database;
mod figures;
mod requests;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::support::App;

/// Every series by its name with its labels, as the text has them.
struct Figures(BTreeMap<String, f64>);

impl Figures {
    async fn of(app: &App) -> Self {
        let response = app.get("/metrics").await;
        assert_eq!(response.status(), 200);
        let text = response.text().await.unwrap();
        let lines = text
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with('#'));
        let series = lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.parse().unwrap())
        });
        Self(series.collect())
    }

    /// The sum of the series of this name that have all these labels; 0 where there is none.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels: Vec<String> = labels.iter().map(|(n, v)| format!("{n}=\"{v}\"")).collect();
        let series = self.0.iter().filter(|(series, _)| {
            series.split('{').next() == Some(name) && labels.iter().all(|l| series.contains(l))
        });
        series.map(|(_, value)| value).sum()
    }
}

/// Reads the metrics until they are like this.
async fn until(app: &App, what: &str, is: impl Fn(&Figures) -> bool) -> Figures {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let figures = Figures::of(app).await;
        if is(&figures) {
            return figures;
        }
        assert!(Instant::now() < deadline, "never {what}: {:#?}", figures.0);
        sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a figure is this whole number.
fn is(figure: f64, expected: u32) -> bool {
    (figure - f64::from(expected)).abs() < 1e-9
}
