//! What the feed promises beyond what `changes` tries: order in each room, histories that were rolled back,
//! filters, and the same as a stream and in SQL.

mod filters;
mod order;
mod rolled_back;
mod stream;

use serde_json::Value;

use super::support::App;

/// Every item after a position, with no filter or with one, once there are so many; and where to go on.
async fn read(app: &App, query: &str, items: usize) -> (Vec<Value>, String) {
    let mut after = String::new();
    let mut read = Vec::new();
    loop {
        let response = app
            .get(&format!("/changes?{query}{after}&waitMs=500"))
            .await;
        assert_eq!(response.status(), 200);
        let page: Value = response.json().await.unwrap();
        read.extend(page["changes"].as_array().unwrap().iter().cloned());
        let next = page["next"].as_str().unwrap();
        if read.len() >= items {
            return (read, next.to_owned());
        }
        after = format!("&after={next}");
    }
}
