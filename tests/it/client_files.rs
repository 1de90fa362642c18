//! The JavaScript client as the service hands it out.

use std::collections::BTreeSet;

use super::support::{App, Database};

/// What a module imports or exports from another, without the `./`.
fn imports(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| line.split_once("from \"./")?.1.split('"').next())
        .collect()
}

#[tokio::test]
async fn every_module_of_the_client_is_there_with_all_that_it_imports() {
    let database = Database::new().await;
    // For who has no credential too: there is nothing secret in it.
    let app = App::spawn_with(&database, &["--server-keys", "a-server-key"]).await;
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/javascript/src");
    let modules: BTreeSet<String> = std::fs::read_dir(sources)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".js"))
        .collect();
    assert!(modules.len() > 10);
    let entry = app.get("/client.js").await.text().await.unwrap();
    assert_eq!(imports(&entry), ["client/index.js"]);
    for module in &modules {
        let response = app.get(&format!("/client/{module}")).await;
        assert_eq!(response.status(), 200, "{module}");
        assert_eq!(
            response.headers()["content-type"],
            "text/javascript; charset=utf-8"
        );
        let text = response.text().await.unwrap();
        for import in imports(&text) {
            assert!(modules.contains(import), "{module} imports {import}");
        }
    }
    for absent in ["index.d.ts", "absent.js", "..%2Fpackage.json"] {
        let response = app.get(&format!("/client/{absent}")).await;
        assert_eq!(response.status(), 404, "{absent}");
    }
}
