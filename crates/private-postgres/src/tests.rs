//! These run a real server.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::*;

/// Sends one statement and returns everything the server answered, by as much
/// of the protocol as that needs, because this module knows no client.
fn ask(cluster: &Cluster, statement: &str) -> String {
    let mut stream = UnixStream::connect(cluster.socket_dir().join(".s.PGSQL.5432")).unwrap();
    let message = |body: &[u8]| {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&length.to_be_bytes(), body].concat()
    };
    let version = 196_608_u32.to_be_bytes();
    let startup = [&version[..], b"user\0postgres\0database\0postgres\0\0"].concat();
    stream.write_all(&message(&startup)).unwrap();
    stream.write_all(b"Q").unwrap();
    stream
        .write_all(&message(&[statement.as_bytes(), b"\0"].concat()))
        .unwrap();
    stream.write_all(b"X").unwrap();
    stream.write_all(&message(b"")).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_cluster_starts_survives_a_kill_and_stops() {
    let options = ClusterOptions::throw_away("unit")
        .setting("application_name", "it's set")
        .setting("synchronous_commit", "on");
    let directory = options.data_dir.clone();
    let mut cluster = Cluster::start(options.clone()).unwrap();
    cluster.check().unwrap();
    assert!(ask(&cluster, "show application_name").contains("it's set"));
    let listens = "select '[' || current_setting('listen_addresses') || ']'";
    assert!(ask(&cluster, listens).contains("[]"));
    assert!(
        ask(
            &cluster,
            "create table kept as select 'still here' as words"
        )
        .contains("SELECT 1")
    );

    let refusal = Cluster::start(options).unwrap_err();
    let us = format!("pid {}", std::process::id());
    assert!(refusal.to_string().contains(&us), "{refusal}");

    let url = cluster.url("postgres");
    cluster.kill();
    cluster.check().unwrap();
    cluster.restart().unwrap();
    assert_eq!(cluster.url("postgres"), url);
    assert!(ask(&cluster, "select words from kept").contains("still here"));

    cluster.stop().unwrap();
    assert!(!directory.exists());
}

#[test]
fn data_that_should_last_is_there_after_a_stop() {
    let mut options = ClusterOptions::durable("");
    options.data_dir = ClusterOptions::throw_away("lasting ü \"quoted\", place").data_dir;
    let cluster = Cluster::start(options.clone()).unwrap();
    ask(
        &cluster,
        "create table kept as select 'still here' as words",
    );
    cluster.stop().unwrap();

    let cluster = Cluster::start(options.clone()).unwrap();
    assert!(ask(&cluster, "select words from kept").contains("still here"));
    drop(cluster);

    let version = options.data_dir.join("data/PG_VERSION");
    std::fs::write(version, "13\n").unwrap();
    let refusal = Cluster::start(options.clone()).unwrap_err();
    assert!(
        matches!(refusal, ClusterError::OtherVersion { data_major: 13, .. }),
        "{refusal}"
    );
    std::fs::remove_dir_all(options.data_dir).unwrap();
}

#[test]
fn a_server_that_cannot_start_is_quoted() {
    let options = ClusterOptions::throw_away("refused").setting("shared_buffers", "much");
    let directory = options.data_dir.clone();
    let refusal = Cluster::start(options).unwrap_err().to_string();
    assert!(
        refusal.contains("invalid value for parameter \"shared_buffers\""),
        "{refusal}"
    );
    assert!(!directory.exists());
}

#[test]
fn a_standby_has_what_was_committed_and_takes_over() {
    let options = |name: &str| {
        ClusterOptions::throw_away(name)
            .setting("synchronous_commit", "remote_apply")
            .setting("wal_retrieve_retry_interval", "100ms")
    };
    let mut primary = Cluster::start(options("unit-primary")).unwrap();
    let mut standby = primary.start_standby(options("unit-standby")).unwrap();
    ask(&primary, "alter system set synchronous_standby_names = '*'");
    ask(&primary, "select pg_reload_conf(), pg_sleep(0.2)");
    let made = ask(&primary, "create table kept as select 'here too' as words");
    assert!(made.contains("SELECT 1"), "{made}");

    primary.kill();
    assert!(ask(&standby, "create table refused ()").contains("read-only"));
    ask(&standby, "select pg_promote()");
    assert!(ask(&standby, "insert into kept values ('and new')").contains("INSERT"));

    drop(primary);
    let next = standby.start_standby(options("unit-primary")).unwrap();
    let both = ask(&next, "select string_agg(words, '+') from kept");
    assert!(both.contains("here too+and new"), "{both}");
    next.stop().unwrap();
    standby.stop().unwrap();
}
