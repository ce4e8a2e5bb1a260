use super::*;
use crate::test_util::Scratch;
use std::os::unix::fs::{symlink, FileExt};
use std::os::unix::net::UnixListener;

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count()
}

#[test]
fn a_file_appears_only_when_published() {
    let scratch = Scratch::new("file-publish");
    let made = create_unnamed(scratch.dir(), 0o660).unwrap();
    made.file().write_all_at(b"whole", 0).unwrap();
    assert_eq!(entries(scratch.dir()), 0);
    let file = publish(made, &scratch.path("f")).unwrap();
    sync_dir(scratch.dir()).unwrap();
    assert_eq!(fs::read(scratch.path("f")).unwrap(), b"whole");
    assert_eq!(mode_of(&scratch.path("f")), 0o660);
    assert_eq!(file.metadata().unwrap().nlink(), 1);
}

#[test]
fn the_slower_of_two_learns_it() {
    let scratch = Scratch::new("file-race");
    for make in [create_unnamed, create_provisional] {
        let first = make(scratch.dir(), 0o600).unwrap();
        let second = make(scratch.dir(), 0o600).unwrap();
        publish(first, &scratch.path("f")).unwrap();
        let error = publish(second, &scratch.path("f")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(entries(scratch.dir()), 1, "no provisional name is left");
        fs::remove_file(scratch.path("f")).unwrap();
    }
}

#[test]
fn abandoned_files_vanish() {
    let scratch = Scratch::new("file-abandoned");
    drop(create_unnamed(scratch.dir(), 0o600).unwrap());
    drop(create_provisional(scratch.dir(), 0o600).unwrap());
    assert_eq!(entries(scratch.dir()), 0);
    let missing = create_unnamed(&scratch.path("missing"), 0o600).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn each_wrong_kind_has_its_refusal() {
    let scratch = Scratch::new("file-kinds");
    scratch.file("f");
    symlink(scratch.path("f"), scratch.path("link")).unwrap();
    let fifo = c_path(&scratch.path("fifo")).unwrap();
    // SAFETY: a C string that outlives the call.
    check(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }).unwrap();
    let _socket = UnixListener::bind(scratch.path("socket")).unwrap();
    for read_only in [false, true] {
        let refusal = |path: &Path| open_checked(path, read_only, false).unwrap_err();
        open_checked(&scratch.path("f"), read_only, false).unwrap();
        assert!(matches!(refusal(&scratch.path("link")), OpenRefusal::Symlink));
        assert!(matches!(refusal(scratch.dir()), OpenRefusal::Directory));
        assert!(matches!(refusal(&scratch.path("fifo")), OpenRefusal::Fifo));
        assert!(matches!(refusal(&scratch.path("socket")), OpenRefusal::Socket));
        assert!(matches!(refusal(Path::new("/dev/null")), OpenRefusal::Device));
        assert!(matches!(refusal(&scratch.path("none")), OpenRefusal::Io(error)
            if error.kind() == io::ErrorKind::NotFound));
        assert!(matches!(refusal(Path::new("a\0b")), OpenRefusal::Io(_)));
    }
    assert!(open_checked(&scratch.path("f"), true, false).unwrap().write_all_at(b"x", 0).is_err());
}

#[test]
fn foreign_owners() {
    if effective_user() != 0 {
        return; // only root can make a file of another user
    }
    let scratch = Scratch::new("file-owner");
    scratch.file("f");
    std::os::unix::fs::chown(scratch.path("f"), Some(12345), None).unwrap();
    let refusal = open_checked(&scratch.path("f"), false, false).unwrap_err();
    assert!(matches!(refusal, OpenRefusal::ForeignOwner { uid: 12345 }));
    assert!(refusal.to_string().contains("12345"));
    open_checked(&scratch.path("f"), false, true).unwrap();

    fs::create_dir(scratch.path("d")).unwrap();
    std::os::unix::fs::chown(scratch.path("d"), Some(12345), None).unwrap();
    let refusal = checked_dir(scratch.path("d"), true).unwrap_err();
    assert!(matches!(refusal, NamespaceError::ForeignOwner { uid: 12345, .. }));
}

#[test]
fn namespace_folders() {
    let scratch = Scratch::new("file-namespace");
    let from = |chosen: Option<&OsStr>| namespace_dir_from(chosen, scratch.dir());
    let default = scratch.path(&format!("hashmere-{}", effective_user()));
    for chosen in [None, Some(OsStr::new("")), None] {
        assert_eq!(from(chosen).unwrap(), default);
        assert_eq!(mode_of(&default), 0o700);
    }
    let set_mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
    set_mode(&default, 0o750).unwrap();
    assert!(matches!(from(None), Err(NamespaceError::Exposed { mode: 0o750, .. })));

    let chosen = scratch.path("chosen");
    assert_eq!(from(Some(chosen.as_os_str())).unwrap(), chosen);
    set_mode(&chosen, 0o770).unwrap();
    assert_eq!(from(Some(chosen.as_os_str())).unwrap(), chosen);

    symlink(&chosen, scratch.path("link")).unwrap();
    let refusal = from(Some(scratch.path("link").as_os_str())).unwrap_err();
    assert!(matches!(refusal, NamespaceError::Symlink { .. }));
    scratch.file("f");
    let refusal = from(Some(scratch.path("f").as_os_str())).unwrap_err();
    assert!(matches!(refusal, NamespaceError::NotADirectory { .. }));
    let refusal = from(Some(scratch.path("no/parent").as_os_str())).unwrap_err();
    assert!(matches!(refusal, NamespaceError::Io { .. }));
    assert!(refusal.to_string().contains("no/parent"));
}

/// Not a test: the process that the next one starts, since the environment is a whole process's (and a child that is
/// only forked may find it locked).
#[test]
#[ignore = "started by another test"]
fn heeds_the_variable() {
    if let Some(chosen) = std::env::var_os(DIR_VARIABLE) {
        assert_eq!(namespace_dir().unwrap(), PathBuf::from(chosen));
    }
}

#[test]
fn the_variable_is_heeded() {
    let scratch = Scratch::new("file-variable");
    let mut process = std::process::Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "file::tests::heeds_the_variable", "--ignored"]).env(DIR_VARIABLE, scratch.path("d"));
    let output = process.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed") && scratch.path("d").is_dir(), "{said}");
}
