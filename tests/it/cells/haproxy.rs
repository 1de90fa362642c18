//! Behind HAProxy as `deploy/cells/haproxy.cfg` sets it up, before three cells; and the Lua of Envoy.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use leasehold::cells::{Cell, slot_map};
use leasehold::domain::slot_of;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::super::support::{App, Database, Document, Events, command, room, text};
use super::{cell, join, slots_of};

const NAMES: [&str; 3] = ["one", "two", "three"];
const OWN: [&str; 3] = ["0-1365", "1366-2730", "2731-4095"];

/// Three cells and the proxy before them.
struct Site {
    url: String,
    databases: Vec<Database>,
    apps: Vec<Option<App>>,
    proxy: Child,
    directory: TempDir,
}

fn program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let mut programs = directories.map(|bin| bin.join(name));
    let found = programs.find(|program| program.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: {name} is not installed (apt install {name})");
    }
    found
}

impl Site {
    /// `None`, and said so, where there is no HAProxy.
    async fn open() -> Option<Self> {
        let haproxy = program("haproxy")?;
        let directory = TempDir::new().unwrap();
        let file = |name: &str| directory.path().join(name).display().to_string();
        let mut databases = Vec::new();
        let mut apps = Vec::new();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        let mut settings = Document::read("deploy/cells/haproxy.cfg")
            .text()
            .replace("/run/haproxy/admin.sock", &file("admin.sock"))
            .replace("/etc/haproxy/slots.map", &file("slots.map"))
            .replace("bind :8080", &format!("bind 127.0.0.1:{port}"));
        for (n, own) in OWN.iter().enumerate() {
            let database = cell(own).await;
            let app = App::spawn_with(&database, &["--poll-ms=250ms"]).await;
            app.until_ready().await;
            let address = app.url.strip_prefix("http://").unwrap();
            for instance in ["11", "12"] {
                settings = settings.replace(&format!("10.0.{}.{instance}:3000", n + 1), address);
            }
            databases.push(database);
            apps.push(Some(app));
        }
        assert!(!settings.contains("10.0."), "a server was not found");
        fs::write(file("haproxy.cfg"), settings).unwrap();
        fs::write(
            file("slots.map"),
            slot_map(&cells(&databases)).await.unwrap(),
        )
        .unwrap();
        drop(free);
        let mut proxy = Command::new(haproxy)
            .args(["-db", "-f", &file("haproxy.cfg")])
            .stdout(Stdio::null())
            .stderr(fs::File::create(file("log")).unwrap())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            let said = fs::read_to_string(file("log")).unwrap();
            assert_eq!(proxy.try_wait().unwrap(), None, "haproxy ended: {said}");
            assert!(Instant::now() < deadline, "haproxy does not listen: {said}");
            sleep(Duration::from_millis(20)).await;
        }
        Some(Self {
            url: format!("http://127.0.0.1:{port}"),
            databases,
            apps,
            proxy,
            directory,
        })
    }

    fn app(&self, n: usize) -> &App {
        self.apps[n].as_ref().unwrap()
    }

    /// Which cell has the room by its slot.
    fn home(id: &str) -> usize {
        match slot_of(&room(id)) {
            0..=1365 => 0,
            1366..=2730 => 1,
            _ => 2,
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Both fail only where it has ended.
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

fn cells(databases: &[Database]) -> Vec<Cell> {
    let each = NAMES.iter().zip(databases);
    each.map(|(name, database)| Cell {
        name: (*name).to_owned(),
        database: database.settings(),
    })
    .collect()
}

/// An id as a client writes it into a path.
fn encoded(id: &str) -> String {
    let bytes = id.bytes();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_sends_every_room_to_its_cell_and_a_cell_that_is_down_takes_no_others() {
    let Some(mut site) = Site::open().await else {
        return;
    };
    let client = Client::new();
    let mut ids: Vec<String> = (0..60).map(|n| format!("room-{n}")).collect();
    ids.extend(["a b/c?d#e", "50%+1", "é\u{10348}", "UPPER"].map(str::to_owned));
    ids.push("x".repeat(256));
    for (n, id) in ids.iter().enumerate() {
        // However it is written.
        let written = if n % 2 == 1 || n >= 60 {
            encoded(id)
        } else {
            id.clone()
        };
        let url = format!("{}/rooms/{written}/join", site.url);
        let joined = client
            .post(url)
            .json(&json!({ "userId": "alice" }))
            .send()
            .await
            .unwrap();
        assert_eq!(joined.status(), 200, "{id}");
        let joined: Value = joined.json().await.unwrap();
        assert_eq!(
            (&joined["roomId"], &joined["epoch"]),
            (&json!(id), &json!(1))
        );
    }
    for (n, database) in site.databases.iter().enumerate() {
        let mut here = super::ask(database, "select room_id from leasehold.rooms").await;
        let mut due: Vec<String> = ids
            .iter()
            .filter(|id| Site::home(id) == n)
            .cloned()
            .collect();
        here.sort();
        due.sort();
        assert_eq!(here, due, "cell {n}");
        assert!(!here.is_empty());
    }
    // A proxy that is wrong about a cell makes no room twice.
    for id in &ids[..6] {
        let wrong = site.app((Site::home(id) + 1) % 3);
        let refused = wrong
            .post(&format!("/rooms/{id}/join"), json!({ "userId": "bob" }))
            .await;
        assert_eq!(refused.status(), 421, "{id}");
        assert_eq!(
            wrong
                .get(&format!("/rooms/{id}/participants"))
                .await
                .status(),
            421
        );
    }
    // Under its own name each cell answers for itself.
    let named = client
        .get(format!("{}/rooms", site.url))
        .header("host", "two.localhost");
    let listed: Value = named.send().await.unwrap().json().await.unwrap();
    let listed = listed["rooms"].as_array().unwrap().len();
    assert_eq!(listed, ids.iter().filter(|id| Site::home(id) == 1).count());
    assert_eq!(
        client
            .get(format!("{}/rooms", site.url))
            .send()
            .await
            .unwrap()
            .status(),
        404
    );

    site.apps[1].take().unwrap().stop().await;
    for id in &ids[..30] {
        let url = format!("{}/rooms/{id}/participants", site.url);
        let status = client.get(url).send().await.unwrap().status();
        match Site::home(id) {
            1 => assert_eq!(status, 503, "{id}"),
            _ => assert_eq!(status, 200, "{id}"),
        }
    }
    for database in &site.databases {
        database.verify().await;
    }
}

/// A client that follows a room through the proxy and is in it, for as long as the test lasts.
async fn attend(url: String, id: String, until: Instant) -> (Vec<i64>, Duration) {
    let client = Client::builder()
        .timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    let mut epochs: Vec<i64> = Vec::new();
    let mut longest = Duration::ZERO;
    let mut last_good = Instant::now();
    while Instant::now() < until {
        let asked = match epochs.last() {
            Some(epoch) => client
                .post(format!("{url}/rooms/{id}/heartbeat"))
                .json(&json!({ "userId": "alice", "epoch": epoch })),
            None => client
                .post(format!("{url}/rooms/{id}/join"))
                .json(&json!({ "userId": "alice" })),
        };
        let answer = asked.send().await.unwrap();
        match answer.status().as_u16() {
            200 => epochs.push(
                answer.json::<Value>().await.unwrap()["epoch"]
                    .as_i64()
                    .unwrap(),
            ),
            204 => {}
            409 => {
                let said: Value = answer.json().await.unwrap();
                assert_eq!(said["code"], "moved", "{id}");
                let join = client.post(format!("{url}/rooms/{id}/join"));
                let joined = join
                    .json(&json!({ "userId": "alice" }))
                    .send()
                    .await
                    .unwrap();
                assert_eq!(joined.status(), 200, "{id}");
                let joined: Value = joined.json().await.unwrap();
                epochs.push(joined["epoch"].as_i64().unwrap());
            }
            421 => {
                sleep(Duration::from_millis(5)).await;
                continue;
            }
            status => unreachable!("{id}: {status}"),
        }
        longest = longest.max(last_good.elapsed());
        last_good = Instant::now();
        sleep(Duration::from_millis(10)).await;
    }
    (epochs, longest)
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_move_behind_haproxy_under_open_streams_and_load() {
    if program("socat").is_none() {
        return;
    }
    let Some(site) = Site::open().await else {
        return;
    };
    // Rooms of the first cell, with somebody in each who beats, and a reader.
    let ids = (0..)
        .map(|n| format!("busy-{n}"))
        .filter(|id| Site::home(id) == 0);
    let ids: Vec<String> = ids.take(12).collect();
    let until = Instant::now() + Duration::from_secs(8);
    let mut tasks = Vec::new();
    for id in &ids {
        tasks.push(tokio::spawn(attend(site.url.clone(), id.clone(), until)));
    }
    let client = Client::new();
    let stream = async |id: &str| loop {
        let answer = client
            .get(format!("{}/rooms/{id}/events", site.url))
            .send()
            .await
            .unwrap();
        if answer.status() == 200 {
            break Events::of(answer);
        }
        assert_eq!(answer.status(), 421);
        sleep(Duration::from_millis(20)).await;
    };
    let mut readers: BTreeMap<&str, Events> = BTreeMap::new();
    for id in &ids {
        let mut events = stream(id).await;
        events.expect("snapshot").await;
        readers.insert(id, events);
    }
    sleep(Duration::from_millis(500)).await;

    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
    let file = |name: &str| site.directory.path().join(name);
    let moved = command(&[
        "cell",
        "move",
        "--at-once",
        "4",
        "--slots",
        &slots_of(&names).to_string(),
    ])
    .args([
        "--on-moved",
        concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/cells/tell-haproxy"),
    ])
    .env("LEASEHOLD_MOVE_FROM", site.databases[0].url())
    .env("LEASEHOLD_MOVE_TO", site.databases[1].url())
    .env("CELL", "two")
    .env("HAPROXY_MAP", file("slots.map"))
    .env("HAPROXY_SOCKET", file("admin.sock"))
    .output()
    .unwrap();
    assert!(moved.status.success(), "{}", text(&moved.stderr));
    eprint!("{}", text(&moved.stdout));

    // Each stream of before has ended, and the room is found where it is.
    for (id, events) in &mut readers {
        events.until("misdirected").await;
        assert!(events.try_next().await.is_none(), "the stream goes on");
        let mut events = stream(id).await;
        let mut here = events.expect("snapshot").await.data["participants"]
            .as_array()
            .unwrap()
            .len();
        while here == 0 {
            events.until("joined").await;
            here = 1;
        }
    }
    for (task, id) in tasks.into_iter().zip(&ids) {
        let (epochs, longest) = task.await.unwrap();
        assert_eq!(epochs, [1, 2], "{id}");
        assert!(
            longest < Duration::from_secs(2),
            "{id} was away for {longest:?}"
        );
        assert_eq!(join(&site.databases[0], id, "alice").await, "misdirected");
    }
    // What HAProxy reads at its next start is what the databases say.
    let map = fs::read_to_string(file("slots.map")).unwrap();
    assert_eq!(map, slot_map(&cells(&site.databases)).await.unwrap());
    for database in &site.databases {
        database.verify().await;
    }
}

/// Envoy is in no registry of packages: its filter is run by what it would be run with.
#[test]
fn the_lua_of_envoy_finds_the_slot_that_sql_does() {
    let Some(luajit) = program("luajit") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let file = |name: &str| directory.path().join(name);
    let map: String = (0..4_096)
        .map(|slot| format!("{slot:03x} cell-{slot}\n"))
        .collect();
    fs::write(file("slots.map"), map).unwrap();
    let mut ids: Vec<String> = [1, 54, 55, 56, 63, 64, 65, 119, 120, 256]
        .map(|n| "x".repeat(n))
        .to_vec();
    ids.extend(["kitchen", "a b/c?d", "é\u{10348}", "50%"].map(str::to_owned));
    let paths: Vec<String> = ids
        .iter()
        .map(|id| format!("\"/rooms/{}/join?x=1\"", encoded(id)))
        .collect();
    let driver = format!(
        "dofile(arg[1])
         for _, path in ipairs({{{}, '/rooms', '/users/x/rooms'}}) do
           local has = {{[':path'] = path, ['x-leasehold-cell'] = 'forged'}}
           local headers = {{
             get = function(_, name) return has[name] end,
             remove = function(_, name) has[name] = nil end,
             replace = function(_, name, value) has[name] = value end,
           }}
           envoy_on_request({{headers = function() return headers end}})
           print(has['x-leasehold-cell'])
         end",
        paths.join(", ")
    );
    fs::write(file("driver.lua"), driver).unwrap();
    let ran = Command::new(luajit)
        .arg(file("driver.lua"))
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/deploy/cells/slots.lua"
        ))
        .env("LEASEHOLD_SLOTS_MAP", file("slots.map"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let mut due: Vec<String> = ids
        .iter()
        .map(|id| format!("cell-{}", slot_of(&room(id))))
        .collect();
    due.extend(["nil", "nil"].map(str::to_owned));
    assert_eq!(text(&ran.stdout).lines().collect::<Vec<_>>(), due);
}
