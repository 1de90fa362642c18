//! Tables that Citus has distributed are refused. Citus itself is in no registry of packages, so its catalog
//! stands in: `pg_dist_partition`, with the columns that it has in Citus 11 to 13.

use super::super::support::{Database, run, text};

const CATALOG: &str = "set allow_system_table_mods = on;
     create table pg_catalog.pg_dist_partition (
         logicalrelid regclass not null, partmethod \"char\" not null, partkey text,
         colocationid integer not null default 0, repmodel \"char\" not null default 's', autoconverted boolean);
     grant select on pg_catalog.pg_dist_partition to public";

#[tokio::test]
async fn tables_that_citus_has_distributed_are_refused_and_others_are_not() {
    let database = Database::new().await;
    let migrate = || run(&["migrate"], &database.url());
    let serve = || run(&["serve", "--bind", "127.0.0.1:0"], &database.url());
    database.execute(CATALOG).await;
    database
        .execute("create table public.orders (id int)")
        .await;
    for allowed in [
        // Somebody's own, and one of ours that Citus knows and has left on the coordinator.
        "insert into pg_catalog.pg_dist_partition values ('public.orders', 'h', 'id', 7, 's')",
        "insert into pg_catalog.pg_dist_partition values ('leasehold.blocks', 'n', null, 0, 's')",
    ] {
        database.execute(allowed).await;
        let migrated = migrate();
        assert!(
            migrated.status.success(),
            "{allowed}: {}",
            text(&migrated.stderr)
        );
    }
    for refused in [
        // Distributed by a column; a table of a distributed schema; a reference table.
        "('leasehold.rooms', 'h', 'room_id', 8, 's')",
        "('leasehold.rooms', 'n', null, 9, 's')",
        "('leasehold.rooms', 'n', null, 10, 't')",
    ] {
        database
            .execute(format!(
                "delete from pg_catalog.pg_dist_partition where logicalrelid = 'leasehold.rooms'::regclass;
                 insert into pg_catalog.pg_dist_partition values {refused}"
            ))
            .await;
        for said in [migrate(), serve()] {
            assert!(!said.status.success(), "{refused}");
            let said = text(&said.stderr);
            assert!(
                said.contains("Citus has distributed leasehold.rooms"),
                "{refused}: {said}"
            );
            assert!(said.contains("undistribute_table"), "{refused}: {said}");
        }
    }
}
