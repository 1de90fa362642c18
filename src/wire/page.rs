//! Page tokens: where the next page of a list begins, opaque to whoever hands them back.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Between the parts of a page token: a character that no id contains.
const SEPARATOR: char = '\n';

/// A page token of these parts, safe in a query as it is.
pub fn write_page_token(parts: &[&str]) -> String {
    URL_SAFE_NO_PAD.encode(parts.join(&SEPARATOR.to_string()))
}

/// Its parts; `None` where this is no page token of so many.
pub fn read_page_token<const N: usize>(token: &str) -> Option<[String; N]> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let parts: Vec<String> = text.split(SEPARATOR).map(str::to_owned).collect();
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let token = write_page_token(&["räum / 1", "2"]);
        assert_eq!(read_page_token(&token).unwrap(), ["räum / 1", "2"]);
    }

    #[test]
    fn what_no_answer_contained_is_refused() {
        for text in ["", "x", "%", "AAAA\n", "____"] {
            assert!(read_page_token::<2>(text).is_none(), "{text:?}");
        }
    }
}
