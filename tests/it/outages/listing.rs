//! Outages as an admin sees them, beside the history that they explain.

use leasehold::access::Scope;
use serde_json::{Value, json};

use super::super::support::{Caller, Database, guarded};

const LIST: &str = "insert into leasehold.outages (began_at, ended_at, lease_at, paused_before, paused_after)
    select to_timestamp(at), to_timestamp(at + length), 0, at * 1000000, (at + greatest(length, 0)) * 1000000
      from (values (1000::bigint, 60), (2000, -5), (3000, 20)) as outage (at, length)";

fn began(answer: &Value) -> Vec<i64> {
    let outages = answer["outages"].as_array().unwrap().iter();
    outages
        .map(|outage| outage["beganAtMs"].as_i64().unwrap() / 1000)
        .collect()
}

#[tokio::test]
async fn outages_are_listed_newest_first_and_by_the_period_that_they_touch() {
    let database = Database::new().await;
    let app = guarded(&database, &[]).await;
    database.execute(LIST).await;
    let admin = Caller::new(&app, "mod", Scope::Admin);
    let ask = async |query: &str| admin.get(&format!("/outages{query}")).await.body;

    let all = ask("?to=10000000").await;
    assert_eq!(began(&all), [3000, 2000, 1000]);
    assert_eq!(
        all["outages"][2],
        json!({ "beganAtMs": 1_000_000, "endedAtMs": 1_060_000, "pausedMs": 60_000 })
    );
    for (query, expected) in [
        ("?from=1060000&to=1900000", &[1000][..]),
        ("?from=1060001&to=1994999", &[]),
        // The clock was set back: from 1995 to 2000, whichever comes first.
        ("?from=1996000&to=1997000", &[2000]),
        ("?from=2999000&to=10000000", &[3000]),
        ("?from=1000000&to=1000000", &[1000]),
    ] {
        assert_eq!(began(&ask(query).await), expected, "{query}");
    }

    let first = ask("?to=10000000&limit=2").await;
    assert_eq!(began(&first), [3000, 2000]);
    let next = first["next"].as_str().unwrap();
    let second = ask(&format!("?to=10000000&limit=2&after={next}")).await;
    assert_eq!(
        (began(&second), &second["next"]),
        (vec![1000], &Value::Null)
    );
    assert_eq!(admin.get("/outages?after=x").await.status, 400);
    assert_eq!(
        admin.get("/outages?from=9223372036854775807").await.status,
        400
    );
}
