//! Text is a value wherever it goes: what looks like SQL or a pattern is neither.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::support::{App, Database};

const HOSTILE: &[&str] = &[
    "'; drop table leasehold.rooms; --",
    "\" or 1=1 --",
    "$1",
    "$$; select pg_sleep(60); $$",
    "{a,b}",
    "{\"a\",NULL}",
    "NULL",
    "\\",
    "\\'; --",
    "%",
    "_",
    "../../etc/passwd",
    "a/b?c=d#e&f",
    "-- comment",
    "('x')::text",
    "\u{202e}evil",
    "𝕏' OR ''='",
];

#[tokio::test]
async fn hostile_text_is_stored_and_answered_as_it_is_in_every_field() {
    let database = Database::new().await;
    let app = App::spawn(&database).await;
    for text in HOSTILE {
        let id = utf8_percent_encode(text, NON_ALPHANUMERIC);
        let body = json!({
            "userId": text, "deviceId": text, "metadata": { *text: text }, "cursor": { *text: text },
        });
        let joined = app.post(&format!("/rooms/{id}/join"), body).await;
        assert_eq!(joined.status(), 200, "{text:?}");
        let session =
            json!({ "userId": text, "deviceId": text, "epoch": 1, "cursor": { "at": text } });
        for action in ["heartbeat", "cursor", "disconnect"] {
            let done = app
                .post(&format!("/rooms/{id}/{action}"), session.clone())
                .await;
            assert_eq!(done.status(), 204, "{action} {text:?}");
        }
        let mut item = session.clone();
        item["roomId"] = json!(text);
        let beats = app
            .post("/heartbeats", json!({ "heartbeats": [item] }))
            .await;
        assert_eq!(
            beats.json::<Value>().await.unwrap()["results"],
            json!([{ "status": 204 }])
        );

        let list = app.participants(&id.to_string()).await;
        assert_eq!(list["roomId"], *text);
        assert_eq!(list["participants"][0]["userId"], *text);
        assert_eq!(list["participants"][0]["cursor"], json!({ "at": text }));
        assert_eq!(list["participants"][0]["metadata"], json!({ *text: text }));
        let rooms: Value = app
            .get(&format!("/rooms?prefix={id}"))
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(rooms["rooms"][0]["roomId"], *text);
        let whole = rooms["rooms"].as_array().unwrap().iter();
        assert!(
            whole
                .map(|room| room["roomId"].as_str().unwrap())
                .all(|id| id.starts_with(text))
        );
        for path in [
            format!("/users/{id}/rooms"),
            format!("/users/{id}/sessions"),
            format!("/rooms/{id}/generations"),
            format!("/rooms/{id}/generations/1/sessions"),
        ] {
            assert_eq!(app.get(&path).await.status(), 200, "{path}");
        }
        for query in ["limit", "after", "from", "epoch", "generation"] {
            let path = format!("/users/{id}/sessions?{query}={id}");
            assert!(app.get(&path).await.status().as_u16() < 500, "{path}");
        }
    }
    for text in HOSTILE {
        let id = utf8_percent_encode(text, NON_ALPHANUMERIC);
        let removed = app.delete(&format!("/rooms/{id}/participants/{id}")).await;
        assert_eq!(removed.status(), 204, "{text:?}");
    }
    let rooms: Value = app.get("/rooms").await.json().await.unwrap();
    assert_eq!(rooms["rooms"], json!([]));
    app.stop().await;
    database.verify().await;
}
