//! How a list of the drill file names its kinds: one line per kind, and one trait that all of them are handled
//! through.

/// An enum of kinds, each under its key in the drill file, each with a spec type that implements the trait.
/// Adding a kind is adding its line; everything that the rest asks of it is in the trait, beside its spec.
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $kind:path {
            $($(#[$doc:meta])* $key:literal => $variant:ident($spec:ty),)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $key)] $variant($spec),)+
        }

        impl $name {
            /// Key under which it stands in the file.
            #[must_use]
            pub fn key(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $key,)+
                }
            }

            /// What it does.
            #[must_use]
            pub fn kind(&self) -> &dyn $kind {
                match self {
                    $(Self::$variant(spec) => spec,)+
                }
            }
        }
    };
}
pub(super) use kinds;
