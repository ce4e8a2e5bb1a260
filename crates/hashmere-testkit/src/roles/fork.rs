//! Forks with the store open: `fork STORE SCENARIO`. This process has one thread, unless the scenario says otherwise.

use super::Arguments;
use crate::forked::{fork, wait, CHILD_SECONDS};
use crate::payload;
use hashmere::{Counter, Store};
use nix::unistd::{close, pause};
use std::os::unix::process::parent_id;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) fn run(arguments: &mut Arguments) {
    let store = arguments.store();
    match arguments.next::<String>().as_str() {
        "both" => both(&store),
        "parent-first" => parent_first(store),
        "many" => many(&store),
        "idle" => idle(&store),
        "exec" => exec(&store),
        "view" => view(&store),
        "threads" => threads(&store),
        other => panic!("scenario {other:?}"),
    }
}

/// Parent and child write at the same time, to keys of their own and to one counter.
fn both(store: &Store) {
    write(store, "before", 200);
    let child = fork(|| write(store, "child", 2000));
    write(store, "parent", 2000);
    wait(child);
    verify(store, "before", 200);
    verify(store, "child", 2000);
    verify(store, "parent", 2000);
    println!("done");
}

/// The parent ends while the child goes on; it is the child that says `done`.
fn parent_first(store: Store) {
    write(&store, "parent", 200);
    let parent = std::process::id();
    fork(|| {
        while parent_id() == parent {
            write(&store, "child", 1);
        }
        write(&store, "child", 2000);
        verify(&store, "parent", 200);
        verify(&store, "child", 2000);
        println!("done");
    });
    std::thread::sleep(std::time::Duration::from_millis(20));
    println!("parent ends");
    drop(store);
}

/// Many children, one after the other and side by side.
fn many(store: &Store) {
    for batch in 0..20 {
        let children: Vec<_> = (0..5).map(|n| fork(|| write(store, &format!("{batch}-{n}"), 50))).collect();
        write(store, &format!("parent-{batch}"), 50);
        children.into_iter().for_each(wait);
    }
    for batch in 0..20 {
        (0..5).for_each(|n| verify(store, &format!("{batch}-{n}"), 50));
    }
    println!("done");
}

/// A view that was taken before the fork stays what it was, in the parent also after the child dropped its own copy.
fn view(store: &Store) {
    let value = payload::encode_len(77, 700);
    store.set(b"viewed", &value).expect("set");
    let mut held = Some(store.view(b"viewed").expect("view").expect("present"));
    let mut overwrite = |keep: bool| {
        assert_eq!(held.as_deref(), Some(&value[..]), "the view as it was inherited");
        if !keep {
            held = None;
        }
        for round in 0..2000 {
            store.set(b"viewed", &payload::encode_len(round, 700)).expect("set");
            write(store, "churn", 2);
        }
        store.compact().expect("compact");
        if keep {
            assert_eq!(held.as_deref(), Some(&value[..]), "the view after its key was overwritten");
        }
    };
    wait(fork(|| overwrite(true)));
    wait(fork(|| overwrite(false)));
    overwrite(true);
    println!("done");
}

/// A child that inherits the store and never touches it, while the parent writes without end. Says the child's pid.
fn idle(store: &Store) {
    let child = fork(|| {
        // What waits for the end of the parent's output is not to wait for the child.
        (0..3).for_each(|descriptor| _ = close(descriptor));
        // The alarm ends it, unless it has ended before.
        pause();
    });
    println!("{child}");
    add_for_ever(store);
}

/// Becomes another program, under the same process id, while a thread of it writes.
fn exec(store: &Store) {
    let sleep = || {
        std::thread::sleep(std::time::Duration::from_millis(2));
        let mut command = std::process::Command::new("sleep");
        let streams = command.arg(CHILD_SECONDS.to_string()).stdin(std::process::Stdio::null());
        panic!("exec: {}", std::os::unix::process::CommandExt::exec(streams.stdout(std::process::Stdio::null())));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| add_for_ever(store));
        sleep()
    })
}

fn add_for_ever(store: &Store) {
    loop {
        (0..4).for_each(|key| _ = store.incr(&payload::key(key), 1, Counter::or_create(1)).expect("increment"));
    }
}

/// Forks while other threads of the parent are in the middle of writes.
fn threads(store: &Store) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for name in ["left", "right"] {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    write(store, name, 20);
                }
            });
        }
        for number in 0..40 {
            wait(fork(|| {
                let name = format!("forked-{number}");
                write(store, &name, 50);
                verify(store, &name, 50);
            }));
        }
        stop.store(true, Ordering::Relaxed);
    });
    (0..40).for_each(|number| verify(store, &format!("forked-{number}"), 50));
    println!("done");
}

fn write(store: &Store, who: &str, count: u64) {
    for number in 0..count {
        store.set(format!("{who}-{number}").as_bytes(), &payload::encode(number)).expect("set");
        store.incr(b"writes", 1, Counter::or_create(1)).expect("increment");
    }
}

fn verify(store: &Store, who: &str, count: u64) {
    for number in 0..count {
        let found = store.get(format!("{who}-{number}").as_bytes()).expect("get");
        assert_eq!(found, Some(payload::encode(number)), "{who}-{number}");
    }
}
