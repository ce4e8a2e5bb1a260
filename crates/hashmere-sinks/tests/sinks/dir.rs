//! Feed directories.

use crate::redis::{move_all, once};
use crate::script::all;
use hashmere_feed::Event;
use hashmere_sinks::{read_dir, DirSink, Position, Sink, SinkError};
use hashmere_testkit::scratch::Scratch;
use std::fs;
use std::path::{Path, PathBuf};

fn events(path: &Path) -> Result<Vec<Event>, SinkError> {
    let mut found = Vec::new();
    read_dir(path, |event, _| {
        found.push(event);
        Ok(())
    })?;
    Ok(found)
}

fn files(path: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = names.filter(|path| path.extension().is_some_and(|e| e == "feed")).collect();
    files.sort();
    files
}

#[test]
fn files_follow_each_other() {
    let scratch = Scratch::new("sinks");
    let path = scratch.path().join("feed");
    let events_of = all(2000);
    for part in events_of.chunks(97) {
        // Another process each time.
        let mut sink = DirSink::new(&path).rotate_bytes(50_000);
        sink.position().unwrap();
        sink.send(part).unwrap();
        sink.flush().unwrap();
        assert_eq!(sink.position().unwrap(), Position::behind(part.last().unwrap()));
    }
    assert!(files(&path).len() > 5);
    assert_eq!(events(&path).unwrap(), events_of);
    fs::remove_file(&files(&path)[2]).unwrap();
    assert!(events(&path).unwrap_err().to_string().contains("missing"));
}

#[test]
fn a_torn_tail_is_cut_at_every_byte() {
    let scratch = Scratch::new("sinks");
    let path = scratch.path().join("feed");
    let target = format!("dir:{}", path.display());
    move_all(&target, 20, &once()).unwrap();
    let file = files(&path).pop().unwrap();
    let (whole, expected) = (fs::read(&file).unwrap(), all(20));
    for len in (0..whole.len()).step_by(11) {
        fs::write(&file, &whole[..len]).unwrap();
        let lines = whole[..len].iter().filter(|b| **b == b'\n').count();
        let left = if lines == 0 { Vec::new() } else { events(&path).unwrap() };
        assert_eq!(left, expected[..left.len()]);
        move_all(&target, 20, &once()).unwrap();
        let found = events(&path).unwrap();
        let last_copy = found.iter().rposition(|event| matches!(event, Event::Reset { .. })).unwrap();
        assert_eq!(found[last_copy..], expected, "cut at {len}");
    }
}

#[test]
fn damage_is_found() {
    let scratch = Scratch::new("sinks");
    let path = scratch.path().join("feed");
    let mut sink = DirSink::new(&path).rotate_bytes(5_000);
    assert_eq!(sink.position().unwrap(), None);
    all(100).chunks(10).for_each(|part| sink.send(part).unwrap());
    assert!(matches!(DirSink::new(&path).position(), Err(SinkError::Foreign(_))), "it is in use");
    drop(sink);
    let files = files(&path);
    let damage = |file: &Path| {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(file, bytes).unwrap();
    };
    damage(files.last().unwrap());
    let mut sink = DirSink::new(&path);
    let at = sink.position().unwrap();
    assert!(files.last().unwrap().with_extension("torn").exists());
    assert_eq!(events(&path).unwrap().last().map(Position::behind), Some(at));
    drop(sink);
    damage(&files[0]);
    assert!(events(&path).unwrap_err().to_string().contains("damaged"));
}
