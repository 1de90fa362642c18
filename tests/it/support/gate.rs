//! A read that has seen the tables, and whose answer is still to come.

use sqlx::{AssertSqlSafe, PgConnection, raw_sql};

use super::Database;

/// The advisory lock that shuts the gate.
const LOCK: i64 = 7_001;

/// Behind what a function of the schema answers, in one database; open until it is shut.
pub struct Gate(PgConnection);

impl Gate {
    /// From now on what the function answers has to pass.
    pub async fn behind(database: &Database, function: &str) -> Self {
        // In plpgsql a stable function sees what its statement's snapshot has, however long it
        // waits; and it is to wait, where the service would give up and read again.
        database
            .execute(format!(
                "do $do$
                 declare
                     v_function regproc := 'leasehold.{function}';
                     v_parameters text := pg_get_function_arguments(v_function);
                     v_result text := pg_get_function_result(v_function);
                     v_values text;
                 begin
                     select string_agg('$' || n, ', ' order by n) into v_values
                       from pg_proc p, generate_series(1, p.pronargs) n
                      where p.oid = v_function;
                     execute 'alter function leasehold.{function} rename to {function}_behind_the_gate';
                     execute format(
                         'create function leasehold.{function}(%s) returns %s language plpgsql stable
                          set lock_timeout = 0 as $f$
                          begin
                              return query select * from leasehold.{function}_behind_the_gate(%s);
                              perform pg_advisory_lock_shared({LOCK}), pg_advisory_unlock_shared({LOCK});
                          end
                          $f$', v_parameters, v_result, v_values);
                 end
                 $do$"
            ))
            .await;
        Self(database.connect().await)
    }

    /// Nothing passes any more; who waits is one of [`Database::until_waiting_for_locks`].
    pub async fn shut(&mut self) {
        self.run("pg_advisory_lock").await;
    }

    /// Whoever waits passes, and everybody after them.
    pub async fn open(&mut self) {
        self.run("pg_advisory_unlock").await;
    }

    async fn run(&mut self, function: &str) {
        raw_sql(AssertSqlSafe(format!("select {function}({LOCK})")))
            .execute(&mut self.0)
            .await
            .unwrap();
    }
}
