//! One Postgres for the whole run: that of `DATABASE_URL`, or a throw-away one.

use std::sync::LazyLock;

use private_postgres::{Cluster, ClusterOptions};

static CLUSTER: LazyLock<Option<Cluster>> = LazyLock::new(|| {
    std::env::var_os("DATABASE_URL").is_none().then(|| {
        let options = ClusterOptions::throw_away("it").setting("max_connections", "400");
        Cluster::start(options).unwrap()
    })
});

/// The address of a database on it.
pub fn url(database: &str) -> String {
    match &*CLUSTER {
        Some(cluster) => cluster.url(database),
        None => {
            let given = std::env::var("DATABASE_URL").unwrap();
            let mut url = reqwest::Url::parse(&given).unwrap();
            url.set_path(database);
            url.to_string()
        }
    }
}
