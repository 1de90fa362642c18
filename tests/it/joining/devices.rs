//! A person on several devices: who is in the way of whom.

use serde_json::{Value, json};

use super::super::support::race::{Side, at};
use super::super::support::{App, Database};

fn join(device: &str, ms: i64) -> String {
    format!(
        "select concat_ws(' ', j.outcomes[1], j.epochs[1])
           from leasehold.join_members('{{r}}', '{{alice}}', '{{{device}}}', '{{60000}}', '{{5000}}',
                                       p_max_devices => 2, p_now => {}) j",
        at(ms)
    )
}

const DEVICES: &str = "select string_agg(device_id, ' ' order by epoch) from leasehold.members where user_id = 'alice'";

#[tokio::test]
async fn who_rejects_the_present_is_not_kept_out_by_their_own_device() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let ask = async |device: &str| {
        let body = json!({ "userId": "alice", "deviceId": device, "ifPresent": "reject" });
        let response = app.post("/rooms/r/join", body).await;
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    assert_eq!(ask("phone").await.0, 200);
    let (status, again) = ask("phone").await;
    assert_eq!((status, &again["epoch"]), (200, &json!(2)));
    let (status, refused) = ask("desk").await;
    assert_eq!((status, &refused["code"]), (409, &json!("already_present")));
    assert_eq!(refused["epoch"], 2);
    assert_eq!(refused["deviceId"], "phone");
    assert_eq!(refused["expiresAtMs"], again["expiresAtMs"]);
    database.verify().await;
}

#[tokio::test]
async fn with_all_devices_taken_the_one_that_was_lost_first_gives_way() {
    let database = Database::new().await;
    let mut side = Side::new(&database).await;
    side.run(join("a", 0)).await;
    side.run(join("b", 100)).await;
    // Both are heard of often enough.
    assert_eq!(side.run(join("c", 7_500)).await, ["too_many_devices"]);
    // Now one is silent for longer than one and a half of its intervals.
    assert_eq!(side.run(join("c", 7_501)).await, ["joined 3"]);
    assert_eq!(side.run(DEVICES).await, ["b c"]);
    let end = "select reason || ' ' || member_count from leasehold.membership_events where kind = 'ended'";
    assert_eq!(side.run(end).await, ["superseded 1"]);
    // b and c are silent; c was reported lost before b looked it.
    let lost = format!(
        "select leasehold.disconnect_member('r', 'alice', 3, 'c', {})",
        at(7_550)
    );
    assert_eq!(side.run(lost).await, ["disconnected"]);
    assert_eq!(side.run(join("d", 20_000)).await, ["joined 4"]);
    assert_eq!(side.run(DEVICES).await, ["b d"]);
    database.verify().await;
}

#[tokio::test]
async fn the_only_device_that_one_may_have_gives_way_and_the_stay_goes_on() {
    let database = Database::new().await;
    let mut side = Side::new(&database).await;
    let one = |device, ms| join(device, ms).replace("p_max_devices => 2", "p_max_devices => 1");
    side.run(one("a", 0)).await;
    assert_eq!(side.run(one("b", 100)).await, ["too_many_devices"]);
    assert_eq!(side.run(one("b", 10_000)).await, ["joined 2"]);
    let arrival = "select arrival || ' ' || (arrived_at < joined_at) from leasehold.members";
    assert_eq!(side.run(arrival).await, ["1 true"]);
    database.verify().await;
}

#[tokio::test]
async fn one_that_is_being_renewed_at_this_moment_is_not_lost() {
    let database = Database::new().await;
    let mut side = Side::new(&database).await;
    side.run(join("a", 0)).await;
    side.run(join("b", 9_000)).await;
    let renew = format!(
        "select leasehold.heartbeat_member('r', 'alice', 1, 'a', p_now => {})",
        at(10_000)
    );
    let mut renewing = Side::holding(&database, renew).await;
    assert_eq!(side.run(join("c", 10_000)).await, ["too_many_devices"]);
    renewing.run("commit").await;
    assert_eq!(side.run(join("c", 10_001)).await, ["too_many_devices"]);
    database.verify().await;
}

#[tokio::test]
async fn since_when_somebody_is_here_is_told_over_reconnects() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    let first = app.join("r", "alice").await;
    assert_eq!(first["arrivedAtMs"], first["asOfMs"]);
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let second = app.join("r", "alice").await;
    assert_eq!(second["arrivedAtMs"], first["arrivedAtMs"]);
    let person = app.participants("r").await["participants"][0].clone();
    assert_eq!(person["arrivedAtMs"], first["arrivedAtMs"]);
    assert!(person["joinedAtMs"].as_i64() > person["arrivedAtMs"].as_i64());
    app.leave("r", "alice", 2).await;
    let third = app.join("r", "alice").await;
    assert!(third["arrivedAtMs"].as_i64() > first["arrivedAtMs"].as_i64());
    database.verify().await;
}
