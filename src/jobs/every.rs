//! The one loop for what runs on a schedule.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::store::StoreError;

/// A step that says itself, in the log, what it did.
pub trait Job: Send + Sync + 'static {
    /// What the log calls it.
    const NAME: &'static str;

    /// Does what is due, until nothing more is or `stop` is asked for.
    fn step(&self, stop: &CancellationToken)
    -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Takes the step every `interval`, give or take a tenth so that instances spread, until `stop`.
///
/// A step that fails or panics is logged, and the next one is taken in its turn.
pub async fn every(interval: Duration, stop: CancellationToken, job: impl Job) {
    loop {
        // Whatever a step leaves half done is a transaction that was rolled back.
        match AssertUnwindSafe(job.step(&stop)).catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(job = job_name(&job), %error, "a job failed and will be tried again");
            }
            Err(_) => tracing::error!(
                job = job_name(&job),
                "a job panicked and goes on with its next step"
            ),
        }
        let pause = interval.mul_f64(rand::random_range(0.9..1.1));
        if stop.run_until_cancelled(sleep(pause)).await.is_none() {
            return;
        }
    }
}

const fn job_name<J: Job>(_: &J) -> &'static str {
    J::NAME
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Panics at its first step, fails at its second, and stops at its third.
    struct Clumsy(Arc<AtomicU32>);

    impl Job for Clumsy {
        const NAME: &'static str = "clumsy";

        #[expect(clippy::panic, reason = "what the loop has to survive")]
        async fn step(&self, stop: &CancellationToken) -> Result<(), StoreError> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => panic!("on purpose"),
                1 => Err(StoreError::Locked),
                _ => {
                    stop.cancel();
                    Ok(())
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_panics_or_fails_goes_on_with_its_next_step() {
        let steps = Arc::default();
        let job = Clumsy(Arc::clone(&steps));
        every(Duration::from_secs(60), CancellationToken::new(), job).await;
        assert_eq!(steps.load(Ordering::Relaxed), 3);
    }
}
