//! Who asks: a credential becomes an [`Access`], which every handler that is not public takes.
//!
//! One file a mechanism. What a caller may do is decided in [`crate::access`].

mod access;
mod authentication;
mod claims;
mod gate;
mod jwks;
mod key_file;
mod mint;
mod published;
mod rate_limit;
mod server_keys;
mod token;

pub use access::Access;
pub use authentication::{AuthSettings, Authentication};
pub use claims::ClaimRules;
pub use gate::Gate;
pub use mint::{NewToken, mint};
pub use published::{KeySetUrl, PublishedSettings};
pub use rate_limit::RateSettings;
pub use token::TokenSettings;
