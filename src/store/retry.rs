//! Calls that took no effect and can be made again.

use super::StoreError;

/// A deadlock or a serialisation failure is tried again so many times.
const RETRIES: u32 = 5;

/// Makes a call again where Postgres asks for it.
///
/// # Errors
/// Those of the last call.
pub async fn retry<T, F>(call: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut retries = 0;
    loop {
        match call().await {
            Err(StoreError::Conflict(_)) if retries < RETRIES => retries += 1,
            outcome => return outcome,
        }
    }
}
