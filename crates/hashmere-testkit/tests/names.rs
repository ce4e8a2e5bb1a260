//! Promise: a store is opened by name in a private folder, which `HASHMERE_DIR` replaces, or by path; folders that
//! others could tamper with are refused. Catches: two processes that mean the same name and get different stores, trust
//! in a folder that any user may write.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use hashmere::{OpenError, Options, Store};
use hashmere_testkit::scratch::Scratch;
use hashmere_testkit::small;
use std::fs::Permissions;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// In the folder of names that this process has.
fn names_that_cannot_be() {
    for name in ["", ".", "..", "a\nb", "-", ".hidden"] {
        match Options::new().create(false).open(name) {
            Err(OpenError::BadName { reason, .. }) => assert!(!reason.is_empty()),
            // Odd, but a name like any other.
            Err(OpenError::NotFound { .. }) if name == "-" || name == ".hidden" || name == "a\nb" => {}
            other => panic!("{name:?}: {other:?}"),
        }
    }
    let long = "x".repeat(300);
    let error = Options::new().create(false).open(&long).unwrap_err();
    assert!(matches!(error, OpenError::BadName { .. } | OpenError::Io { .. }), "{error:?}");
}

/// One test, because it changes the environment of its process.
#[test]
fn by_name_and_by_path() {
    let scratch = Scratch::new("names");
    let folder = scratch.path().join("stores");
    std::env::set_var("HASHMERE_DIR", &folder);

    // The folder is made when it is needed, and is private.
    let named = small().open("sessions").unwrap();
    named.set(b"a", b"b").unwrap();
    assert_eq!(mode(&folder), 0o700);
    assert!(named.path().starts_with(&folder), "{:?}", named.path());
    assert_eq!(mode(named.path()), 0o600);
    assert_eq!(Store::path_of("sessions").unwrap(), named.path());

    // The same file by its path is the same store.
    let by_path = Options::new().create(false).open(named.path()).unwrap();
    assert_eq!(by_path.get(b"a").unwrap().as_deref(), Some(&b"b"[..]));
    let other = small().open("other").unwrap();
    assert_eq!(other.get(b"a").unwrap(), None, "another name is another store");

    // A slash or the extension makes it a path.
    let path = scratch.path().join("plain-file");
    assert_eq!(Store::path_of(&path).unwrap(), path);
    assert_eq!(small().open(&path).unwrap().path(), path);
    assert_eq!(Store::path_of("local.mere").unwrap().file_name().unwrap(), "local.mere");
    assert!(!Store::path_of("local.mere").unwrap().starts_with(&folder));

    assert!(Store::remove("sessions").unwrap());
    assert!(!Store::remove("sessions").unwrap());
    let error = Options::new().create(false).open("sessions").unwrap_err();
    assert!(matches!(error, OpenError::NotFound { .. }), "{error:?}");
    names_that_cannot_be();

    // A folder that was chosen may be shared by a group; a link in the place of one is not trusted.
    std::fs::set_permissions(&folder, Permissions::from_mode(0o770)).unwrap();
    assert!(Options::new().open("other").is_ok());
    let link = scratch.path().join("link");
    symlink(&folder, &link).unwrap();
    std::env::set_var("HASHMERE_DIR", &link);
    let result = Options::new().open("other");
    assert!(matches!(result, Err(OpenError::InsecurePermissions { .. })), "through a link: {result:?}");

    // A file in the place of the folder.
    let file = scratch.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    std::env::set_var("HASHMERE_DIR", &file);
    let error = Options::new().open("other").unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    std::env::remove_var("HASHMERE_DIR");
}
