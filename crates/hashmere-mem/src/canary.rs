//! Known faults that tests switch on to prove that they would notice.

/// Defines canaries: known faults, one line each where the code would have them (see `docs/testing.md`).
///
/// Makes an enum `Canary`, and `is`, which says whether one is switched on. In any build but those for tests `is` is the constant
/// `false`: no build that anybody uses contains a canary. With the feature `canary` the variable `HASHMERE_CANARY` switches one on for
/// a whole process; in unit tests `with` does it for a thread.
#[macro_export]
macro_rules! canaries {
    ($($(#[doc = $text:literal])+ $name:ident,)+) => {
        /// One fault: what is done wrong then.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Canary {
            $($(#[doc = $text])+ $name,)+
        }

        #[cfg(any(test, feature = "canary"))]
        impl Canary {
            /// All of them, with their names and what they do.
            pub(crate) const ALL: &'static [(Canary, &'static str, &'static str)] =
                &[$((Canary::$name, stringify!($name), concat!($($text),+)),)+];
        }

        #[cfg(not(any(test, feature = "canary")))]
        #[inline(always)]
        pub(crate) const fn is(_: Canary) -> bool {
            false
        }

        #[cfg(any(test, feature = "canary"))]
        pub(crate) use switch::is;
        #[cfg(test)]
        pub(crate) use switch::with;

        #[cfg(any(test, feature = "canary"))]
        pub(crate) mod switch {
            use super::Canary;
            use std::cell::Cell;
            use std::sync::OnceLock;

            // Of the thread of the test, which runs all threads of its models.
            thread_local! {
                static ON: Cell<Option<Canary>> = const { Cell::new(None) };
            }

            /// Whether this fault is to be made.
            pub(crate) fn is(canary: Canary) -> bool {
                ON.get().or_else(of_process) == Some(canary)
            }

            fn of_process() -> Option<Canary> {
                static NAMED: OnceLock<Option<Canary>> = OnceLock::new();
                *NAMED.get_or_init(|| {
                    let name = std::env::var("HASHMERE_CANARY").ok()?;
                    let found = Canary::ALL.iter().find(|(_, known, _)| *known == name);
                    assert!(found.is_some(), "there is no canary {name}");
                    found.map(|(canary, _, _)| *canary)
                })
            }

            /// The one that is switched on for this thread.
            #[cfg(test)]
            pub(crate) fn on() -> Option<Canary> {
                ON.get()
            }

            /// Runs something with this fault, or with none.
            #[cfg(test)]
            pub(crate) fn with<R>(canary: impl Into<Option<Canary>>, act: impl FnOnce() -> R) -> R {
                let before = ON.replace(canary.into());
                let result = act();
                ON.set(before);
                result
            }
        }
    };
}
