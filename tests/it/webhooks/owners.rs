//! Instances that die, stand still and share: one serves an endpoint, and nothing is lost.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{FLAGS, SECRET, told};
use crate::support::{Database, Delivery, Receiver, Reply, Service};

async fn put(service: &Service, url: &str) {
    let request = service.client.put(format!("{}/webhooks/hook", service.url));
    let request = request.json(&json!({ "url": url, "secret": SECRET }));
    assert_eq!(request.send().await.unwrap().status(), 200);
}

async fn join(service: &Service, room: &str, user: &str) {
    let request = service
        .client
        .post(format!("{}/rooms/{room}/join", service.url));
    let request = request.json(&json!({ "userId": user }));
    assert_eq!(request.send().await.unwrap().status(), 200);
}

async fn state(service: &Service) -> Value {
    let request = service.client.get(format!("{}/webhooks/hook", service.url));
    request.send().await.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_is_killed_in_the_middle_of_a_delivery_loses_nothing_and_repeats_only_that()
 {
    let database = Database::new().await;
    // The third delivery of all is under way when its sender dies.
    let receiver = Receiver::answering(|delivery| match delivery.repeats {
        0 if delivery.body.contains("\"victim\"") => Reply::Hang,
        _ => Reply::Status(200),
    })
    .await;
    let mut first = Service::serve(&database.url(), &FLAGS).await;
    put(&first, &receiver.url).await;
    for n in 0..10 {
        join(&first, "r", &format!("user-{n}")).await;
    }
    receiver
        .until_all("ten joins", |_| receiver.changes_of("r").len() == 11)
        .await;
    join(&first, "r", "victim").await;
    let is_under_way = |seen: &[Delivery]| seen.iter().any(|d| d.body.contains("victim"));
    receiver
        .until_all("a delivery under way", is_under_way)
        .await;
    first.kill();

    let second = Service::serve(&database.url(), &FLAGS).await;
    for n in 10..20 {
        join(&second, "r", &format!("user-{n}")).await;
    }
    receiver
        .until_all("all joins", |_| receiver.changes_of("r").len() == 22)
        .await;
    let mut expected = vec!["room_opened -".to_owned()];
    expected.extend((0..10).map(|n| format!("joined user-{n}")));
    expected.push("joined victim".to_owned());
    expected.extend((10..20).map(|n| format!("joined user-{n}")));
    assert_eq!(told(&receiver.changes_of("r")), expected);
    let seen = receiver.deliveries();
    let repeated: Vec<_> = seen.iter().filter(|d| d.repeats > 0).collect();
    assert!(
        repeated.iter().all(|d| d.body.contains("victim")),
        "{repeated:?}"
    );
    database.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_instances_one_serves_an_endpoint_and_the_other_takes_over_when_it_stops() {
    let database = Database::new().await;
    let receiver = Receiver::content().await;
    let one = Service::serve(&database.url(), &FLAGS).await;
    let two = Service::serve(&database.url(), &FLAGS).await;
    put(&one, &receiver.url).await;
    for n in 0..50 {
        let service = [&one, &two][n % 2];
        join(service, &format!("room-{}", n % 3), &format!("user-{n}")).await;
    }
    receiver
        .until_all("all joins", |seen| count(seen) == 53)
        .await;
    one.stop(Signal::TERM).await;
    for n in 50..60 {
        join(&two, "room-0", &format!("user-{n}")).await;
    }
    let seen = receiver
        .until_all("all joins", |seen| count(seen) == 63)
        .await;
    assert!(seen.iter().all(|d| d.repeats == 0), "nothing is sent twice");
    assert_eq!(receiver.most_of_a_room(), 1);
    for room in ["room-0", "room-1", "room-2"] {
        let versions: Vec<i64> = receiver
            .changes_of(room)
            .iter()
            .map(|change| change["version"].as_i64().unwrap())
            .collect();
        assert!(versions.is_sorted(), "{versions:?}");
    }
    database.verify().await;
}

fn count(seen: &[Delivery]) -> usize {
    seen.iter().map(|delivery| delivery.changes().len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_stood_still_beyond_its_lease_moves_nothing_and_sends_nothing_more() {
    let database = Database::new().await;
    // The first try of this one is answered well, but after its sender has lost the endpoint.
    let receiver = Receiver::answering(|delivery| match delivery.repeats {
        0 if delivery.body.contains("\"late\"") => Reply::After(Duration::from_millis(500), 200),
        1 if delivery.body.contains("\"late\"") => Reply::Status(500),
        _ => Reply::Status(200),
    })
    .await;
    let owner = Service::serve_logging("info", &database.url(), &FLAGS).await;
    put(&owner, &receiver.url).await;
    join(&owner, "r", "alice").await;
    receiver.until(1).await;
    join(&owner, "r", "late").await;
    let is_late = |d: &Delivery| d.body.contains("late");
    receiver
        .until_all("late", |seen| seen.iter().any(is_late))
        .await;
    owner.signal(Signal::STOP);

    let heir = Service::serve(&database.url(), &FLAGS).await;
    // The heir's try is refused, so the delivery waits; the answer of before would end it.
    receiver
        .until_all("a second try", |seen| seen.iter().any(|d| d.repeats == 1))
        .await;
    let epoch = epoch(&database).await;
    owner.signal(Signal::CONT);
    // It finds its answer now, and that it is nobody's.
    receiver
        .until_all("a third try", |seen| seen.iter().any(|d| d.repeats == 2))
        .await;
    join(&heir, "r", "bob").await;
    receiver
        .until_all("bob", |_| receiver.changes_of("r").len() == 4)
        .await;
    let seen = receiver.deliveries();
    assert_eq!(seen.iter().filter(|d| is_late(d)).count(), 3, "{seen:#?}");
    assert_eq!(
        told(&receiver.changes_of("r")),
        ["room_opened -", "joined alice", "joined late", "joined bob"]
    );
    assert_eq!(self::epoch(&database).await, epoch, "{}", owner.said());
    assert_eq!(state(&heir).await["status"], "active");
    database.verify().await;
}

async fn epoch(database: &Database) -> i64 {
    sqlx::query_scalar!("select epoch from leasehold.webhooks")
        .fetch_one(&database.pool)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_step_that_names_an_older_epoch_changes_nothing() {
    let database = Database::new().await;
    let lease = Duration::from_secs(60);
    let store = &database.store;
    database
        .execute(format!(
            "select leasehold.set_webhook('hook', 'http://localhost/', '{SECRET}', p_after => null)"
        ))
        .await;
    let old = store.claim_webhooks("one", lease).await.unwrap().remove(0);
    assert!(store.claim_webhooks("two", lease).await.unwrap().is_empty());
    let due = store.renew_webhook(&old, lease).await.unwrap().unwrap();
    let run = leasehold::domain::Run {
        room_id: crate::support::room("r"),
        items: "{}".into(),
        changes: 1,
    };
    let runs = [run];
    assert!(
        store
            .take_changes(&old, &due, &place("1"), &runs)
            .await
            .unwrap()
    );
    // The same page is taken once.
    assert!(
        !store
            .take_changes(&old, &due, &place("1"), &runs)
            .await
            .unwrap()
    );
    let (pending, sent) = store
        .due_deliveries(&old, &due, &[], 8)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((pending, sent.len()), (1, 1));
    let busy = ["r".to_owned()];
    let (_, none) = store
        .due_deliveries(&old, &due, &busy, 8)
        .await
        .unwrap()
        .unwrap();
    assert!(none.is_empty());

    database
        .execute("update leasehold.webhooks set lease_until = now()")
        .await;
    let new = store.claim_webhooks("two", lease).await.unwrap().remove(0);
    assert_eq!(new.epoch, old.epoch + 1);
    let before = rows(&database).await;
    let settled = [leasehold::domain::Settled {
        seq: sent[0].seq,
        failure: None,
        retry_ms: None,
    }];
    let settle = store.settle_deliveries(&old, &settled, Some(lease), true, lease);
    assert_eq!(settle.await.unwrap(), None);
    assert!(store.renew_webhook(&old, lease).await.unwrap().is_none());
    assert!(
        !store
            .take_changes(&old, &due, &place("2"), &runs)
            .await
            .unwrap()
    );
    assert!(
        store
            .due_deliveries(&old, &due, &[], 8)
            .await
            .unwrap()
            .is_none()
    );
    assert!(!store.expire_webhook(&old, &due).await.unwrap());
    store.release_webhook(&old).await.unwrap();
    assert_eq!(rows(&database).await, before);
    database.verify().await;
}

fn place(text: &str) -> leasehold::domain::Position {
    leasehold::domain::Position::parse(text).unwrap()
}

async fn rows(database: &Database) -> Vec<String> {
    sqlx::query_scalar!(
        r#"select w::text as "row!" from leasehold.webhooks w
           union all select d::text from leasehold.webhook_deliveries d"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap()
}
