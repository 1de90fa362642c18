//! Signatures of the SQL functions, as the reference shows them.

use sqlx::PgConnection;

/// A function of the schema as a caller sees it, one parameter a line.
pub async fn of(connection: &mut PgConnection, name: &str) -> String {
    let found = sqlx::query!(
        r#"select pg_get_function_arguments(p.oid) as "arguments!",
                  pg_get_function_result(p.oid) as "result!",
                  p.proretset as is_set
             from pg_proc p
            where p.pronamespace = 'leasehold'::regnamespace and p.proname = $1"#,
        name
    )
    .fetch_one(connection)
    .await
    .unwrap();
    let (outs, parameters): (Vec<&str>, Vec<&str>) = found
        .arguments
        .split(", ")
        .filter(|argument| !argument.is_empty())
        .partition(|argument| argument.starts_with("OUT "));
    let columns: Vec<&str> = match found.result.strip_prefix("TABLE(") {
        Some(table) => table.trim_end_matches(')').split(", ").collect(),
        None => outs
            .iter()
            .map(|out| out.trim_start_matches("OUT "))
            .collect(),
    };
    let kind = if found.is_set { "table" } else { "record" };
    let result = if columns.is_empty() {
        format!("returns {}", found.result)
    } else {
        format!("returns {kind} {}", listed(&columns))
    };
    format!("leasehold.{name}{} {result}", listed(&parameters))
        .replace("timestamp with time zone", "timestamptz")
}

/// In parentheses, one a line, without the casts that Postgres adds to defaults.
fn listed(items: &[&str]) -> String {
    if items.is_empty() {
        return "()".to_owned();
    }
    let lines: Vec<&str> = items
        .iter()
        .map(|item| item.split_once("::").map_or(*item, |(before, _)| before))
        .collect();
    format!(
        "(\n    {}\n)",
        lines
            .join(",\n    ")
            .replace(" DEFAULT NULL", " default null")
            .replace(" DEFAULT ", " default ")
    )
}
