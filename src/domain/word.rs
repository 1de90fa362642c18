//! Closed sets of words: what SQL and HTTP call a thing is decided once, with the type.

/// A text from the database that is not in the set that this build knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the database answered with an unknown word {0:?}; is the schema newer than this program?")]
pub struct UnknownWord(pub String);

/// An enum whose variants are words on the wire.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident => $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every one of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word that SQL and HTTP use for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::domain::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::domain::UnknownWord(word.to_owned())),
                }
            }
        }
    };
}

pub(super) use words;
