//! The pages beside the API: what is served, with which headers, and how they are switched on and off.

use std::fs;
use std::path::Path;

use super::support::{App, Database};

/// Every file that pages load, as a path below `web`.
fn files() -> Vec<String> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    let mut found = Vec::new();
    for directory in ["console", "demo", "shared"] {
        for entry in fs::read_dir(web.join(directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            found.push(format!("{directory}/{name}"));
        }
    }
    assert!(found.len() > 5, "{found:?}");
    found
}

/// What stands in quotation marks after one of these words.
fn quoted<'a>(text: &'a str, before: &[&str]) -> Vec<&'a str> {
    let parts = before.iter().flat_map(|word| text.split(word).skip(1));
    parts.filter_map(|part| part.split('"').next()).collect()
}

/// All pages on, for who has no credential.
async fn with_pages(database: &Database) -> App {
    App::spawn_with(database, &["--server-keys", "key", "--demo", "on"]).await
}

#[tokio::test]
async fn every_file_of_the_pages_is_handed_out_as_what_it_is() {
    let database = Database::new().await;
    let app = with_pages(&database).await;
    for file in files() {
        if file.ends_with(".html") {
            // The page has an address of its own, with its headers.
            assert_eq!(app.get(&format!("/{file}")).await.status(), 404, "{file}");
            continue;
        }
        let response = app.get(&format!("/{file}")).await;
        assert_eq!(response.status(), 200, "{file} is not embedded");
        let content_type = match file.rsplit('.').next().unwrap() {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            other => unreachable!("{file}: say how {other} is handed out"),
        };
        let headers = response.headers();
        assert_eq!(headers["content-type"], content_type, "{file}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{file}");
        assert_eq!(headers["cache-control"], "no-cache", "{file}");
        let written =
            fs::read_to_string(format!("{}/web/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert_eq!(response.text().await.unwrap(), written, "{file}");
    }
    for absent in [
        "/console/absent.js",
        "/demo/..%2Findex.html",
        "/shared/page.js",
    ] {
        assert_eq!(app.get(absent).await.status(), 404, "{absent}");
    }
}

#[tokio::test]
async fn a_page_loads_only_what_this_service_has_and_may_do_nothing_else() {
    let database = Database::new().await;
    let app = with_pages(&database).await;
    for path in ["/", "/console", "/demo"] {
        let response = app.get(path).await;
        assert_eq!(response.status(), 200, "{path}");
        let headers = response.headers();
        assert_eq!(headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(headers["cache-control"], "no-cache");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(
            headers["content-security-policy"],
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        );
        let html = response.text().await.unwrap();
        assert!(!html.contains("style=") && !html.contains("<style"));
        let loaded = quoted(&html, &["src=\"", "href=\""]);
        assert!(!loaded.is_empty());
        for address in loaded {
            assert!(
                !address.contains("//") && !address.starts_with('/'),
                "{path} has {address}, which is not beside it"
            );
            let status = app.get(&format!("/{address}")).await.status();
            assert_eq!(status, 200, "{path} links to {address}");
        }
    }
}

#[tokio::test]
async fn a_module_imports_only_what_is_there() {
    let database = Database::new().await;
    let app = with_pages(&database).await;
    for file in files().iter().filter(|file| file.ends_with(".js")) {
        let url = reqwest::Url::parse(&format!("{}/{file}", app.url)).unwrap();
        let source = app
            .client
            .get(url.clone())
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        for import in quoted(&source, &[" from \"", "import(\""]) {
            let imported = url.join(import).unwrap();
            let status = app.client.get(imported).send().await.unwrap().status();
            assert_eq!(status, 200, "{file} imports {import}");
        }
    }
}

#[tokio::test]
async fn the_demo_is_off_unless_it_is_asked_for_and_the_console_on_unless_it_is_not_wanted() {
    let database = Database::new().await;
    for (flags, console, demo) in [
        (&[][..], true, false),
        (&["--demo", "on"], true, true),
        (&["--console", "off"], false, false),
        (&["--console", "off", "--demo", "on"], false, true),
    ] {
        let app = App::spawn_with(&database, flags).await;
        let start = app.get("/").await.text().await.unwrap();
        for (name, is_on) in [("console", console), ("demo", demo)] {
            let status = if is_on { 200 } else { 404 };
            let css = format!("/{name}/{name}.css");
            for path in [&format!("/{name}"), &css] {
                assert_eq!(app.get(path).await.status(), status, "{flags:?} {path}");
            }
            let link = format!("href=\"{name}\"");
            assert_eq!(start.contains(&link), is_on, "{flags:?} {name}");
        }
        assert!(start.contains("href=\"docs/\""), "{start}");
        app.stop().await;
    }
}

#[test]
fn no_page_reads_markup_from_what_it_shows_and_each_file_fits_into_a_head() {
    for file in files() {
        let path = format!("{}/web/{file}", env!("CARGO_MANIFEST_DIR"));
        let source = fs::read_to_string(path).unwrap();
        for sink in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "srcdoc",
            "eval(",
            "new Function",
        ] {
            assert!(!source.contains(sink), "{file} has {sink}");
        }
        let lines = source.lines().count();
        assert!(lines < 400, "web/{file} has {lines} lines; split it");
    }
}
