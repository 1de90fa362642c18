//! Runs SQL as psql does, statement by statement, and renders what it answers as psql does.

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Column, PgConnection, Row, TypeInfo, ValueRef, raw_sql};

/// The answers to a script: a table per statement that returns rows, an ERROR
/// line per statement that fails, nothing for one that only succeeds.
pub async fn run(connection: &mut PgConnection, script: &str) -> String {
    let mut answers = Vec::new();
    for statement in statements(script) {
        match raw_sql(AssertSqlSafe(statement.clone()))
            .fetch_all(&mut *connection)
            .await
        {
            Ok(rows) if !rows.is_empty() => answers.push(table(&rows)),
            Ok(_) if is_query(&statement) => answers.push("(0 rows)\n".to_owned()),
            Ok(_) => {}
            Err(sqlx::Error::Database(error)) => {
                answers.push(format!("ERROR:  {}\n", error.message()));
            }
            Err(error) => answers.push(format!("no answer: {error}\n")),
        }
    }
    answers.join("\n")
}

/// A statement ends where a line ends with a semicolon, outside of `$$`.
fn statements(script: &str) -> Vec<String> {
    let mut statements = Vec::new();
    let mut open = String::new();
    for line in script.lines() {
        open.push_str(line);
        open.push('\n');
        let code = line.split("--").next().unwrap_or_default().trim_end();
        if code.ends_with(';') && open.matches("$$").count().is_multiple_of(2) {
            statements.push(std::mem::take(&mut open));
        }
    }
    assert!(open.trim().is_empty(), "not a whole statement: {open}");
    statements
}

fn is_query(statement: &str) -> bool {
    let code = statement
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with("--"))
        .unwrap_or_default();
    ["select", "with", "table"]
        .iter()
        .any(|word| code.starts_with(word))
}

fn table(rows: &[PgRow]) -> String {
    let columns = rows[0].columns();
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| (0..columns.len()).map(|n| cell(row, n)).collect())
        .collect();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(n, column)| {
            cells
                .iter()
                .map(|row| row[n].chars().count())
                .chain([column.name().chars().count()])
                .max()
                .unwrap_or_default()
        })
        .collect();

    let head = columns
        .iter()
        .zip(&widths)
        .map(|(column, &width)| format!(" {:^width$} ", column.name()))
        .collect::<Vec<_>>()
        .join("|");
    let rule = widths
        .iter()
        .map(|width| "-".repeat(width + 2))
        .collect::<Vec<_>>()
        .join("+");
    let mut lines = vec![head.trim_end().to_owned(), rule];
    for row in &cells {
        let line = row
            .iter()
            .zip(columns)
            .zip(&widths)
            .map(|((cell, column), &width)| {
                if is_number(column.type_info().name()) {
                    format!(" {cell:>width$} ")
                } else {
                    format!(" {cell:<width$} ")
                }
            })
            .collect::<Vec<_>>()
            .join("|");
        lines.push(line.trim_end().to_owned());
    }
    let plural = if rows.len() == 1 { "" } else { "s" };
    lines.push(format!("({} row{plural})\n", rows.len()));
    lines.join("\n")
}

/// Over the simple protocol every value arrives as Postgres writes it.
fn cell(row: &PgRow, n: usize) -> String {
    let value = row.try_get_raw(n).unwrap();
    if value.is_null() {
        return String::new();
    }
    value.as_str().unwrap().to_owned()
}

fn is_number(type_name: &str) -> bool {
    ["INT2", "INT4", "INT8", "NUMERIC", "FLOAT4", "FLOAT8"].contains(&type_name)
}
