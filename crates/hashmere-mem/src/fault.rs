//! Known faults that tests switch on to prove that they would notice.

/// Defines seeded faults: known faults, one line each where the code would have them (see `docs/internals/testing.md`).
///
/// Makes an enum `Fault`, and `is`, which says whether one is switched on. In any build but those for tests `is` is the
/// constant `false`: no released build contains a seeded fault. With the feature `seeded-faults` the variable
/// `HASHMERE_FAULT` switches one on for a whole process; in unit tests `with` does it for a thread, `hunt` has tests
/// run with each, and `assert_hunted` sees that none is forgotten.
#[macro_export]
macro_rules! seeded_faults {
    ($($(#[doc = $text:literal])+ $name:ident,)+) => {
        /// One fault: what is done wrong then.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Fault {
            $($(#[doc = $text])+ $name,)+
        }

        #[cfg(any(test, feature = "seeded-faults"))]
        impl Fault {
            /// All of them, with their names and what they do.
            pub(crate) const ALL: &'static [(Fault, &'static str, &'static str)] =
                &[$((Fault::$name, stringify!($name), concat!($($text),+)),)+];
        }

        #[cfg(not(any(test, feature = "seeded-faults")))]
        #[inline(always)]
        pub(crate) const fn is(_: Fault) -> bool {
            false
        }

        #[cfg(any(test, feature = "seeded-faults"))]
        pub(crate) use switch::is;
        #[cfg(test)]
        pub(crate) use switch::{assert_hunted, hunt, with, Hunt};

        #[cfg(any(test, feature = "seeded-faults"))]
        pub(crate) mod switch {
            use super::Fault;
            use std::cell::Cell;
            use std::sync::OnceLock;

            // Of the thread of the test, which runs all threads of its models.
            thread_local! {
                static ON: Cell<Option<Fault>> = const { Cell::new(None) };
            }

            /// Whether this fault is to be made.
            pub(crate) fn is(fault: Fault) -> bool {
                ON.get().or_else(of_process) == Some(fault)
            }

            fn of_process() -> Option<Fault> {
                static NAMED: OnceLock<Option<Fault>> = OnceLock::new();
                *NAMED.get_or_init(|| {
                    let name = std::env::var("HASHMERE_FAULT").ok()?;
                    let found = Fault::ALL.iter().find(|(_, known, _)| *known == name);
                    assert!(found.is_some(), "there is no fault {name}");
                    found.map(|(fault, _, _)| *fault)
                })
            }

            /// The one that is switched on for this thread.
            #[cfg(test)]
            pub(crate) fn on() -> Option<Fault> {
                ON.get()
            }

            /// Runs something with this fault, or with none.
            #[cfg(test)]
            pub(crate) fn with<R>(fault: impl Into<Option<Fault>>, act: impl FnOnce() -> R) -> R {
                let before = ON.replace(fault.into());
                let result = act();
                ON.set(before);
                result
            }

            /// A fault, where it shows, and what panics if it does.
            #[cfg(test)]
            pub(crate) type Hunt = (Fault, &'static str, fn());

            /// Switches each on in turn, and prints what noticed it and in which words.
            ///
            /// # Panics
            /// If nothing did.
            #[cfg(test)]
            pub(crate) fn hunt(hunts: &[Hunt]) {
                let mut missed = Vec::new();
                for (fault, by, run) in hunts {
                    let Err(panic) = with(*fault, || std::panic::catch_unwind(run)) else {
                        missed.push(fault);
                        continue;
                    };
                    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
                    println!("fault {fault:?} | {by} | {}", text.unwrap_or("a panic without words").replace('\n', " "));
                }
                assert!(missed.is_empty(), "no test noticed {missed:?}");
            }

            /// Sees that each seeded fault is hunted here or by others, and named in `table`, the text of
            /// docs/internals/testing.md.
            ///
            /// # Panics
            /// If one is or does not.
            #[cfg(test)]
            pub(crate) fn assert_hunted(hunts: &[Hunt], others: impl Fn(Fault, &str) -> bool, table: &str) {
                for (fault, name, what) in Fault::ALL {
                    let here = hunts.iter().any(|(hunted, _, _)| hunted == fault);
                    assert!(here || others(*fault, name), "no test hunts {name}:{what}");
                    assert!(table.contains(&format!("| `{name}` |")), "docs/internals/testing.md does not name {name}");
                }
            }
        }
    };
}
