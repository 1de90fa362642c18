//! Runs the few forms of `curl` that the documents use, wherever the service under test listens.

use std::time::Duration;

use reqwest::{Client, Method};

/// The address that the documents use.
const DOCUMENTED: &str = "http://127.0.0.1:3000";

/// A line of a shell block.
pub enum Command {
    Curl(Vec<String>),
    Sleep(Duration),
}

/// The commands of a shell block, or `None` if it is about something else.
pub fn commands(script: &str) -> Option<Vec<Command>> {
    let script = script.replace("\\\n", " ");
    script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut words = words(line);
            match words.remove(0).as_str() {
                "curl" => Some(Command::Curl(words)),
                "sleep" => words[0]
                    .parse()
                    .ok()
                    .map(Duration::from_secs)
                    .map(Command::Sleep),
                _ => None,
            }
        })
        .collect()
}

/// As a shell splits a line with single quotes and nothing else of note.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (n, part) in line.split('\'').enumerate() {
        if n % 2 == 1 {
            words.last_mut().unwrap().push_str(part);
            continue;
        }
        for (k, piece) in part.split(' ').enumerate() {
            if k > 0 {
                words.push(String::new());
            }
            words.last_mut().unwrap().push_str(piece);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What the terminal shows.
pub async fn curl(client: &Client, url: &str, arguments: &[String]) -> String {
    let mut method = None;
    let mut body = None;
    let mut address = None;
    let mut headers = Vec::new();
    let mut suffix = String::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-s" => {}
            "-X" => method = rest.next().map(|m| m.parse::<Method>().unwrap()),
            "-H" => headers.push(rest.next().unwrap().split_once(": ").unwrap()),
            "-d" => body = rest.next().cloned(),
            "-w" => suffix = rest.next().unwrap().replace("\\n", "\n"),
            option if option.starts_with('-') => {
                unreachable!("teach tests/it/support/curl.rs the option {option}")
            }
            _ => address = Some(argument.replace(DOCUMENTED, url)),
        }
    }
    let posts = body.is_some();
    let method = method.unwrap_or(if posts { Method::POST } else { Method::GET });
    let mut request = client.request(method, address.unwrap());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let response = request.body(body.unwrap_or_default()).send().await.unwrap();
    let status = response.status().as_u16().to_string();
    let text = response.text().await.unwrap();
    text + &suffix.replace("%{http_code}", &status)
}
