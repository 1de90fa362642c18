//! `leasehold healthcheck`: says by its exit status how the service is, and always ends in time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Output;
use std::time::{Duration, Instant};

use super::support::{Database, Service, command, text};

/// The command, with a proxy in its environment that nobody may ask.
fn check(address: &str, flags: &[&str]) -> Output {
    command(&["healthcheck"])
        .args(flags)
        .env("LEASEHOLD_BIND", address)
        .env("http_proxy", "http://127.0.0.1:1")
        .output()
        .unwrap()
}

/// Where somebody listens who answers everything so; `None` never answers.
fn answering(answer: Option<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if let Some(answer) = answer {
                let _ = stream.read(&mut [0; 4096]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
            open.push(stream);
        }
    });
    address
}

#[tokio::test]
async fn a_service_that_is_ready_is_well_whatever_address_it_was_bound_to() {
    let database = Database::new().await;
    let service = Service::serve(&database.url(), &[]).await;
    let address = service.url.strip_prefix("http://").unwrap();
    let everywhere = address.replace("127.0.0.1", "0.0.0.0");
    // Ready as soon as its first sweep is over.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !check(address, &[]).status.success() {
        assert!(Instant::now() < deadline, "{:?}", check(address, &[]));
    }
    for (flags, said) in [(&[][..], "ready\n"), (&["--live"], "ok\n")] {
        for bind in [address, &everywhere] {
            let output = check(bind, flags);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            assert_eq!(text(&output.stdout), said);
        }
    }
}

#[tokio::test]
async fn a_service_that_lives_but_is_not_ready_is_told_apart() {
    let database = Database::new().await;
    let service = Service::serve(&database.url(), &[]).await;
    let address = service.url.strip_prefix("http://").unwrap();
    database
        .execute(
            "update leasehold._sqlx_migrations set checksum = 'other'
              where version = (select max(version) from leasehold._sqlx_migrations)",
        )
        .await;
    let ready = check(address, &[]);
    assert_eq!(ready.status.code(), Some(1));
    let said = text(&ready.stderr);
    assert!(said.contains("/readyz answers 503: "), "{said}");
    assert!(said.contains("the database's schema is not one"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(check(address, &["--live"]).status.code(), Some(0));
}

#[test]
fn nobody_and_somebody_else_are_not_well() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap();
    drop(free);
    let page = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    for (address, why) in [
        (nobody, "does not answer"),
        (answering(Some(page)), "and not as Leasehold does"),
        (answering(Some("what?\r\n\r\n")), "does not answer"),
    ] {
        let output = check(&address.to_string(), &[]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn it_waits_no_longer_than_it_was_told_to() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{";
    for answer in [None, Some(half)] {
        let address = answering(answer).to_string();
        let began = Instant::now();
        let output = check(&address, &["--timeout=300ms"]);
        let took = began.elapsed();
        assert_eq!(output.status.code(), Some(1));
        assert!(took >= Duration::from_millis(300), "{took:?}");
        assert!(took < Duration::from_secs(4), "{took:?}");
    }
}

#[test]
fn a_port_that_the_service_chose_must_be_named() {
    let output = check("127.0.0.1:0", &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("name the one that its log says"), "{said}");
}
