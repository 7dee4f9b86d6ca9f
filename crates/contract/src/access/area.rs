//! What a grant is about: the things of a contract, or what is no contract's.

use std::fmt;

use crate::with_contracts;

macro_rules! areas {
    ($($(#[doc = $says:literal])* $folder:ident: $thing:ident($rejection:ident))*) => {
        /// What a grant is about.
        ///
        /// ```
        /// use statehouse_contract::access::Area;
        /// assert_eq!(Area::named("records"), Some(Area::Record));
        /// assert_eq!(Area::named("record"), None);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Area {
            $(#[doc = concat!("The things of the contract `", stringify!($folder), "`.")] $thing,)*
            /// Sessions, and what is pushed to them.
            Session,
            /// Messages to brokers, by the name of the queue, and dead letters, by the group that refused them.
            Message,
            /// The types, guards, branches and retention of a space.
            Catalogue,
            /// The whole store: its status and metrics, backups, spaces, limits, principals.
            Store,
        }

        impl Area {
            /// All of them.
            pub const ALL: &[Self] =
                &[$(Self::$thing,)* Self::Session, Self::Message, Self::Catalogue, Self::Store];

            /// Its name, which is stored.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$thing => stringify!($folder),)*
                    Self::Session => "sessions",
                    Self::Message => "messages",
                    Self::Catalogue => "catalogue",
                    Self::Store => "store",
                }
            }
        }
    };
}

with_contracts!(areas);

impl Area {
    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|area| area.name() == name)
    }
}

impl fmt::Display for Area {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CONTRACTS;

    #[test]
    fn every_contract_is_an_area_and_every_name_is_read() {
        assert!(CONTRACTS.iter().all(|contract| Area::named(contract).is_some()));
        assert!(Area::ALL.iter().all(|area| Area::named(area.name()) == Some(*area)));
    }
}
