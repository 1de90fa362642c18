//! What is checked is what is connected to, whatever a name leads to later.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::{Answer, Message, Reach, Sender, Target};

/// A server at this address that answers each connection once with 204; its port, and how often it
/// was connected to.
fn server(address: &str) -> (u16, Arc<AtomicU32>) {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&connections);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
        }
    });
    (port, connections)
}

/// Sends to a name of which the n-th look-up finds the n-th address, and all later ones the last.
async fn send(reach: &Reach, port: u16, found: &[&str], times: usize) -> (Vec<Answer>, u32) {
    let found: Vec<IpAddr> = found.iter().map(|ip| ip.parse().unwrap()).collect();
    let looks = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&looks);
    let lookup = Arc::new(move |_| {
        let look = counted.fetch_add(1, Ordering::SeqCst) as usize;
        let address = found[look.min(found.len() - 1)];
        async move { Ok(vec![address]) }.boxed()
    });
    let sender = Sender::resolving(reach.clone(), lookup).unwrap();
    let target = Target::parse(&format!("http://rebinding.test:{port}/"), reach).unwrap();
    let mut answers = Vec::new();
    for _ in 0..times {
        let message = Message {
            id: "msg_1".into(),
            timestamp: 1,
            body: "{}".into(),
        };
        let deadline = Instant::now() + Duration::from_secs(5);
        answers.push(sender.send(&target, &[], message, deadline).await);
    }
    (answers, looks.load(Ordering::SeqCst))
}

fn why(answer: &Answer) -> &str {
    match answer {
        Answer::Failed { why, .. } => why,
        _ => "",
    }
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_a_connection_and_that_address_is_connected_to() {
    let (port, connections) = server("127.0.0.1");
    let reach = Reach::new(vec!["127.0.0.1/32".parse().unwrap()]);
    // Who looked twice would connect to the second.
    let (answers, looks) = send(&reach, port, &["127.0.0.1", "127.0.0.2"], 1).await;
    assert_eq!(answers, [Answer::Taken]);
    assert_eq!((looks, connections.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn a_name_that_leads_inside_later_is_refused_then() {
    let (port, connections) = server("127.0.0.1");
    let reach = Reach::new(vec!["127.0.0.1/32".parse().unwrap()]);
    let (answers, _) = send(&reach, port, &["127.0.0.1", "127.0.0.2"], 2).await;
    assert_eq!(answers[0], Answer::Taken);
    assert!(why(&answers[1]).contains("127.0.0.2"), "{answers:?}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_name_that_leads_inside_is_never_connected_to_whatever_the_address_wears() {
    let (port, connections) = server("127.0.0.1");
    let reach = Reach::default();
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fd00::1",
        "fe80::1",
    ] {
        let (answers, _) = send(&reach, port, &[address], 1).await;
        assert!(
            why(&answers[0]).contains("not on the public internet"),
            "{address}: {answers:?}"
        );
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}
