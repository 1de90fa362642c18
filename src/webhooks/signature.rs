//! The headers of Standard Webhooks: <https://www.standardwebhooks.com>.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::domain::WebhookSecret;

/// One signature a secret, separated by spaces: a receiver that knows one of them is content.
pub(super) fn signature(secrets: &[WebhookSecret], id: &str, timestamp: i64, body: &str) -> String {
    let signatures = secrets.iter().filter_map(|secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.key()).ok()?;
        mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
        let code = mac.finalize().into_bytes();
        Some(format!("v1,{}", STANDARD.encode(code)))
    });
    signatures.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_the_reference_library() {
        let secrets = [
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
        ];
        let parsed = secrets.map(|secret| WebhookSecret::parse(secret).unwrap());
        let body = r#"{"changes":[{"roomId":"räum"}]}"#;
        let expected = secrets.map(|secret| {
            let reference = standardwebhooks::Webhook::new(secret).unwrap();
            reference
                .sign("msg_1", 1_700_000_000, body.as_bytes())
                .unwrap()
        });
        assert_eq!(
            signature(&parsed, "msg_1", 1_700_000_000, body),
            expected.join(" ")
        );
    }
}
