//! Delivering the feed to the addresses of others: who serves an endpoint, what is sent, and whereto.

mod endpoint;
mod example;
mod file;
mod networks;
mod owner;
mod resolver;
mod sender;
mod signature;
mod target;
#[cfg(test)]
mod tests;

pub use example::send_example;
pub use file::apply_file;
pub use networks::Reach;
pub use owner::{WebhookSettings, Webhooks};
pub use sender::{Answer, Message, Sender};
pub use target::{InvalidTarget, Target};
