//! The schema as the migrations leave it, beside `docs/schema.sql`: what a
//! review of a migration looks at. Read from the catalogs, so that it is the same
//! on every version of Postgres.

use std::fmt::Write;
use std::path::Path;

use super::support::Database;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schema.sql");

#[tokio::test]
async fn the_schema_is_that_of_the_document() {
    let database = Database::new().await;
    let found = dump(&database).await;
    if std::env::var_os("LEASEHOLD_ADOPT").is_some() {
        std::fs::write(GOLDEN, &found).unwrap();
    }
    let golden = std::fs::read_to_string(Path::new(GOLDEN)).unwrap_or_default();
    let mut lines = found.lines().zip(golden.lines()).zip(1..);
    let different = lines.find(|((found, golden), _)| found != golden);
    if let Some(((found, golden), line)) = different {
        unreachable!(
            "docs/schema.sql differs from the migrations at line {line}:\n  \
             the document has {golden:?}\n  the migrations make {found:?}\n\
             to adopt what the migrations make: make schema"
        );
    }
    assert_eq!(
        found.len(),
        golden.len(),
        "docs/schema.sql is not as long as what the migrations make; to adopt that: make schema"
    );
}

#[tokio::test]
async fn every_table_view_and_function_has_a_comment() {
    let database = Database::new().await;
    let mute = sqlx::query_scalar!(
        r#"select c.oid::regclass::text as "name!"
             from pg_class c
            where c.relnamespace = 'leasehold'::regnamespace and c.relkind in ('r', 'v', 'm', 'p')
              and c.relname <> '_sqlx_migrations'
              and obj_description(c.oid, 'pg_class') is null
           union all
           select p.oid::regprocedure::text
             from pg_proc p
            where p.pronamespace = 'leasehold'::regnamespace
              and obj_description(p.oid, 'pg_proc') is null"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert!(mute.is_empty(), "without a comment: {mute:#?}");
}

#[tokio::test]
async fn every_constraint_and_index_has_a_name_that_was_chosen() {
    let database = Database::new().await;
    let defaults = sqlx::query_scalar!(
        r#"select conname::text as "name!"
             from pg_constraint
            where connamespace = 'leasehold'::regnamespace
              and contype in ('c', 'f') and conname ~ '(_check|_fkey)[0-9]*$'
              and conname <> 'members_room_fkey'"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert!(defaults.is_empty(), "{defaults:#?}");
}

#[tokio::test]
async fn nothing_that_a_heartbeat_changes_is_indexed() {
    let database = Database::new().await;
    let indexed = sqlx::query_scalar!(
        r#"select a.attname::text as "name!"
             from pg_index i
             join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey::smallint[])
            where i.indrelid = 'leasehold.members'::regclass
              and a.attname in ('last_seen_at', 'lease_end', 'lease_ms', 'cursor',
                                'metadata', 'disconnected_at')"#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert!(indexed.is_empty(), "{indexed:?}");
    let computed = sqlx::query_scalar!(
        r#"select count(*) as "n!" from pg_index
            where indrelid = 'leasehold.members'::regclass
              and (indexprs is not null or indpred is not null)"#
    )
    .fetch_one(&database.pool)
    .await
    .unwrap();
    assert_eq!(computed, 0);
}

/// Everything in the schema but sqlx's bookkeeping, in a fixed order.
async fn dump(database: &Database) -> String {
    let mut out = String::from(
        "-- The schema leasehold as the migrations leave it; written by `make schema`,\n\
         -- compared by a test, and not to be run.\n",
    );
    let relations = sqlx::query!(
        r#"select c.oid::int8 as "oid!", c.relname::text as "name!", c.relkind = 'v' as "is_view!",
                  obj_description(c.oid, 'pg_class') as comment,
                  array_to_string(c.reloptions, ', ') as options,
                  case when c.relkind = 'v' then pg_get_viewdef(c.oid, true) end as definition
             from pg_class c
            where c.relnamespace = 'leasehold'::regnamespace
              and c.relkind in ('r', 'p', 'v', 'm') and c.relname <> '_sqlx_migrations'
            order by c.relkind = 'v', c.relname collate "C""#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    for relation in relations {
        let name = &relation.name;
        if let Some(definition) = relation.definition {
            write!(out, "\ncreate view leasehold.{name} as\n{definition}\n").unwrap();
        } else {
            write!(out, "\ncreate table leasehold.{name} (\n").unwrap();
            out.push_str(&body(database, relation.oid).await);
            let options = relation
                .options
                .map_or_else(String::new, |o| format!(" with ({o})"));
            write!(out, "\n){options};\n").unwrap();
            out.push_str(&indexes(database, relation.oid).await);
        }
        let kind = if relation.is_view { "view" } else { "table" };
        comment(
            &mut out,
            &format!("{kind} leasehold.{name}"),
            relation.comment,
        );
        let columns = sqlx::query!(
            r#"select attname::text as "name!", col_description(attrelid, attnum) as comment
                 from pg_attribute
                where attrelid = $1::int8::oid and attnum > 0 and not attisdropped
                order by attnum"#,
            relation.oid
        )
        .fetch_all(&database.pool)
        .await
        .unwrap();
        for column in columns {
            let subject = format!("column leasehold.{name}.{}", column.name);
            comment(&mut out, &subject, column.comment);
        }
    }
    out.push_str(&functions(database).await);
    out.push_str(&triggers(database).await);
    out
}

fn comment(out: &mut String, subject: &str, comment: Option<String>) {
    if let Some(comment) = comment {
        let quoted = comment.replace('\'', "''");
        writeln!(out, "comment on {subject} is\n    '{quoted}';").unwrap();
    }
}

/// The columns and constraints of a table.
async fn body(database: &Database, table: i64) -> String {
    let lines = sqlx::query_scalar!(
        r#"select line as "line!"
             from (select 1 as part, a.attnum::int as position, ''::text as name,
                          format('    %I %s%s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                                 case when a.attcollation <> t.typcollation
                                      then ' collate "' || l.collname || '"' end,
                                 case when a.attnotnull then ' not null' end,
                                 ' default ' || pg_get_expr(d.adbin, d.adrelid),
                                 case a.attidentity when 'a' then ' generated always as identity'
                                                    when 'd' then ' generated by default as identity' end) as line
                     from pg_attribute a
                     join pg_type t on t.oid = a.atttypid
                     left join pg_collation l on l.oid = a.attcollation
                     left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
                    where a.attrelid = $1::int8::oid and a.attnum > 0 and not a.attisdropped
                   union all
                   select 2, strpos('puxcf', c.contype::text), c.conname::text,
                          format('    constraint %I %s', c.conname, pg_get_constraintdef(c.oid))
                     from pg_constraint c
                    where c.conrelid = $1::int8::oid and c.contype in ('p', 'u', 'x', 'c', 'f')) lines
            order by part, position, name collate "C""#,
        table
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    lines.join(",\n")
}

/// The indexes that no constraint made.
async fn indexes(database: &Database, table: i64) -> String {
    let lines = sqlx::query_scalar!(
        r#"select pg_get_indexdef(i.indexrelid) as "line!"
             from pg_index i
             join pg_class c on c.oid = i.indexrelid
            where i.indrelid = $1::int8::oid
              and not exists (select from pg_constraint k where k.conindid = i.indexrelid
                                                            and k.conrelid = i.indrelid)
            order by c.relname collate "C""#,
        table
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    lines
        .iter()
        .fold(String::new(), |all, line| all + line + ";\n")
}

async fn functions(database: &Database) -> String {
    let functions = sqlx::query!(
        r#"select p.proname::text as "name!", pg_get_functiondef(p.oid) as "definition!",
                  pg_get_function_identity_arguments(p.oid) as "arguments!",
                  obj_description(p.oid, 'pg_proc') as comment
             from pg_proc p
            where p.pronamespace = 'leasehold'::regnamespace
            order by p.proname collate "C", pg_get_function_identity_arguments(p.oid) collate "C""#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    let mut out = String::new();
    for function in functions {
        let definition = function.definition.trim_end();
        write!(out, "\n{definition};\n").unwrap();
        let subject = format!(
            "function leasehold.{}({})",
            function.name, function.arguments
        );
        comment(&mut out, &subject, function.comment);
    }
    out
}

async fn triggers(database: &Database) -> String {
    let triggers = sqlx::query_scalar!(
        r#"select pg_get_triggerdef(t.oid) as "line!"
             from pg_trigger t
             join pg_class c on c.oid = t.tgrelid
            where c.relnamespace = 'leasehold'::regnamespace and not t.tgisinternal
            order by c.relname collate "C", t.tgname collate "C""#
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    triggers
        .iter()
        .fold(String::new(), |all, line| all + "\n" + line + ";\n")
}
