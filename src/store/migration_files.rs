//! The embedded migrations as files for the tool that a team migrates with; each also records itself
//! where the service looks, so that it serves on the schema that this tool applied.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{fs, io};

use sqlx::migrate::Migration;

use super::migrate::MIGRATOR;

/// An empty way back would make the tool forget what is still there.
const NO_WAY_BACK: &str =
    "do $$ begin raise exception 'the migrations of leasehold only go forward'; end $$;\n";

/// The tool that is to apply the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationTool {
    /// psql, or whatever runs a file of SQL: each begins and commits its transaction.
    Sql,
    /// <https://documentation.red-gate.com/flyway>
    Flyway,
    /// <https://github.com/amacneil/dbmate>
    Dbmate,
    /// <https://github.com/pressly/goose>
    Goose,
}

impl MigrationTool {
    /// From its word on the command line.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "sql" => Some(Self::Sql),
            "flyway" => Some(Self::Flyway),
            "dbmate" => Some(Self::Dbmate),
            "goose" => Some(Self::Goose),
            _ => None,
        }
    }
}

/// Files were not written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The directory or a file of it.
    #[error("{} cannot be written: {error}", path.display())]
    Io {
        /// Of the file or the directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The tool may have applied what is there.
    #[error(
        "{} is there already with another text, and was perhaps applied; export into an empty directory \
         and compare", .0.display()
    )]
    Different(PathBuf),
    /// dbmate sends a file as one query, which is a transaction.
    #[error(
        "migration {0:04} runs outside of a transaction, which dbmate cannot do together with recording it"
    )]
    NoTransaction(i64),
}

/// Writes what the directory lacks, oldest first, and returns those files. What is there stays; nothing is
/// written where one of them has another text.
///
/// # Errors
/// [`ExportError`]
pub fn export_migrations(
    tool: MigrationTool,
    directory: &Path,
) -> Result<Vec<PathBuf>, ExportError> {
    let failed = |path: &Path, error| ExportError::Io {
        path: path.to_owned(),
        error,
    };
    let mut missing = Vec::new();
    for migration in MIGRATOR.iter() {
        for (name, text) in files(tool, migration)? {
            let path = directory.join(name);
            match fs::read_to_string(&path) {
                Ok(there) if there == text => {}
                Ok(_) => return Err(ExportError::Different(path)),
                Err(error) if error.kind() == ErrorKind::NotFound => missing.push((path, text)),
                Err(error) => return Err(failed(&path, error)),
            }
        }
    }
    fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for (path, text) in &missing {
        fs::write(path, text).map_err(|error| failed(path, error))?;
    }
    Ok(missing.into_iter().map(|(path, _)| path).collect())
}

/// The files of one migration, by name.
fn files(tool: MigrationTool, migration: &Migration) -> Result<Vec<(String, String)>, ExportError> {
    let version = migration.version;
    let about = migration.description.replace(' ', "_");
    let name = format!("{version:04}_{about}.sql");
    let before = before();
    let sql = migration.sql.as_str();
    let record = record(migration);
    let in_transaction = !migration.no_tx;
    let whole = format!("{before}\n{sql}\n{record}");
    Ok(match tool {
        MigrationTool::Sql if in_transaction => {
            vec![(name, format!("begin;\n{whole}commit;\n"))]
        }
        MigrationTool::Sql => vec![(name, whole)],
        MigrationTool::Flyway => {
            let name = format!("V{version:04}__{about}.sql");
            // What looks like a placeholder of Flyway is SQL.
            let settings =
                format!("placeholderReplacement=false\nexecuteInTransaction={in_transaction}\n");
            vec![(format!("{name}.conf"), settings), (name, whole)]
        }
        MigrationTool::Dbmate if in_transaction => {
            vec![(
                name,
                format!("-- migrate:up\n{whole}\n-- migrate:down\n{NO_WAY_BACK}"),
            )]
        }
        MigrationTool::Dbmate => return Err(ExportError::NoTransaction(version)),
        MigrationTool::Goose => {
            let head = if in_transaction {
                ""
            } else {
                "-- +goose NO TRANSACTION\n"
            };
            let statements = [before.as_str(), sql, record.as_str()]
                .map(|part| format!("-- +goose StatementBegin\n{part}\n-- +goose StatementEnd\n"));
            let back = format!("-- +goose StatementBegin\n{NO_WAY_BACK}-- +goose StatementEnd\n");
            vec![(
                name,
                format!(
                    "{head}-- +goose Up\n{}-- +goose Down\n{back}",
                    statements.concat()
                ),
            )]
        }
    })
}

/// What `leasehold migrate` makes before the first migration: the same schema and the same bookkeeping.
fn before() -> String {
    let schemas = MIGRATOR.create_schemas.iter();
    let schemas: String = schemas
        .map(|schema| format!("create schema if not exists {schema};\n"))
        .collect();
    format!(
        "{schemas}create table if not exists {} (\n    \
             version bigint primary key,\n    \
             description text not null,\n    \
             installed_on timestamptz not null default now(),\n    \
             success boolean not null,\n    \
             checksum bytea not null,\n    \
             execution_time bigint not null\n\
         );\n",
        MIGRATOR.table_name
    )
}

/// Without this row `serve` takes the migration for pending; by its checksum it knows the text.
fn record(migration: &Migration) -> String {
    let checksum = migration.checksum.iter();
    let checksum: String = checksum.map(|byte| format!("{byte:02x}")).collect();
    let description = migration.description.replace('\'', "''");
    format!(
        "\ninsert into {} (version, description, success, checksum, execution_time)\n    \
         values ({}, '{description}', true, '\\x{checksum}', 0);\n",
        MIGRATOR.table_name, migration.version
    )
}

#[cfg(test)]
mod tests {
    use sqlx::migrate::MigrationType;
    use sqlx::{AssertSqlSafe, SqlSafeStr};

    use super::*;

    #[test]
    fn a_migration_outside_of_a_transaction_stays_so_or_is_refused() {
        let sql =
            AssertSqlSafe("-- no-transaction\ncreate index concurrently i on t (x);".to_owned());
        let migration = Migration::new(
            7,
            "an index".into(),
            MigrationType::Simple,
            sql.into_sql_str(),
            true,
        );
        let text = |tool| {
            let files = files(tool, &migration).unwrap();
            files.into_iter().map(|(_, text)| text).collect::<String>()
        };
        assert!(!text(MigrationTool::Sql).contains("begin;"));
        assert!(text(MigrationTool::Flyway).contains("executeInTransaction=false"));
        let goose = text(MigrationTool::Goose);
        assert!(goose.starts_with("-- +goose NO TRANSACTION\n-- +goose Up\n"));
        // Each is sent by itself.
        let (up, down) = goose.split_once("-- +goose Down\n").unwrap();
        assert_eq!(up.matches("-- +goose StatementBegin").count(), 3);
        assert!(down.contains("only go forward"));
        let refused = files(MigrationTool::Dbmate, &migration).unwrap_err();
        assert!(refused.to_string().contains("migration 0007"), "{refused}");
    }
}
