//! Known faults that tests switch on to prove that they would notice.

/// Defines canaries: known faults, one line each where the code would have them (see `docs/internals/testing.md`).
///
/// Makes an enum `Canary`, and `is`, which says whether one is switched on. In any build but those for tests `is` is the constant
/// `false`: no build that anybody uses contains a canary. With the feature `canary` the variable `HASHMERE_CANARY` switches one on for
/// a whole process; in unit tests `with` does it for a thread, `hunt` has tests run with each, and `assert_hunted` sees that none is
/// forgotten.
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
        pub(crate) use switch::{assert_hunted, hunt, with, Hunt};

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

            /// A fault, where it shows, and what panics if it does.
            #[cfg(test)]
            pub(crate) type Hunt = (Canary, &'static str, fn());

            /// Switches each on in turn, and prints what noticed it and in which words.
            ///
            /// # Panics
            /// If nothing did.
            #[cfg(test)]
            pub(crate) fn hunt(hunts: &[Hunt]) {
                let mut missed = Vec::new();
                for (canary, by, run) in hunts {
                    let Err(panic) = with(*canary, || std::panic::catch_unwind(run)) else {
                        missed.push(canary);
                        continue;
                    };
                    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
                    println!("canary {canary:?} | {by} | {}", text.unwrap_or("a panic without words").replace('\n', " "));
                }
                assert!(missed.is_empty(), "nobody noticed {missed:?}");
            }

            /// Sees that each canary is hunted here or by others, and stands in the table of docs/internals/testing.md, whose text this is.
            ///
            /// # Panics
            /// If one is or does not.
            #[cfg(test)]
            pub(crate) fn assert_hunted(hunts: &[Hunt], others: impl Fn(Canary, &str) -> bool, table: &str) {
                for (canary, name, what) in Canary::ALL {
                    let here = hunts.iter().any(|(hunted, _, _)| hunted == canary);
                    assert!(here || others(*canary, name), "nobody hunts {name}:{what}");
                    assert!(table.contains(&format!("| `{name}` |")), "docs/internals/testing.md does not name {name}");
                }
            }
        }
    };
}
