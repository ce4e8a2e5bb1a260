//! What is drawn, on small and large screens, with and without colours.

use super::*;
use crate::top::keys::{apply, Then};
use crate::top::model::{Sort, Target};
use hashmere::{Options, Store};
use hashmere_log::{Log, LogOptions};
use hashmere_queue::PoolOptions;
use hashmere_testkit::scratch::Scratch;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use std::time::Duration;

/// The lines of a screen of this size.
fn drawn(model: &Model, (width, height): (u16, u16), theme: &Theme) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, theme)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_string();
    (0..height).map(row).collect()
}

fn has_colour(model: &Model, theme: &Theme) -> bool {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, model, theme)).unwrap();
    let buffer = terminal.backend().buffer();
    buffer.content().iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
}

fn press(model: &mut Model, keys: &[KeyCode]) -> Then {
    keys.iter().map(|key| apply(model, KeyEvent::new(*key, KeyModifiers::NONE))).last().unwrap()
}

/// Two stores with something of everything: their handles, and what is shown of them.
fn stores(scratch: &Scratch) -> (Vec<Store>, Model) {
    let paths = ["sessions.mere", "pages.mere"].map(|name| scratch.path().join(name));
    let stores: Vec<Store> = paths.iter().map(|path| Options::new().feed(1 << 20).open(path).unwrap()).collect();
    PoolOptions::new(10, 24).open(&stores[0], "jobs").unwrap();
    Log::open(&stores[0], "events", LogOptions::default()).unwrap();
    let mut model = Model::new(Target::Named(paths.to_vec()), Duration::from_secs(1)).unwrap();
    for i in 0..500 {
        stores[0].set(format!("key:{i}").as_bytes(), &[b'v'; 100]).unwrap();
    }
    for i in 0..500 {
        stores[0].get(format!("key:{}", 2 * i).as_bytes()).unwrap();
    }
    model.refresh().unwrap();
    (stores, model)
}

const SIZES: [(u16, u16); 3] = [(80, 24), (200, 60), (60, 16)];

#[test]
fn the_list_leads_to_a_store_and_that_to_a_process() {
    let scratch = Scratch::new("top");
    let (_stores, mut model) = stores(&scratch);
    for size in SIZES {
        model.screen = Screen::Stores;
        let list = drawn(&model, size, &Theme::PLAIN);
        assert!(list[0].contains("2 stores  every 1s"), "{list:#?}");
        assert!(
            list[1].starts_with("STORE") && list[2].starts_with("sessions") && list[2].contains(" 500 "),
            "{list:#?}"
        );
        assert!(list[2].contains("50.0%") && list[3].starts_with("pages"), "{list:#?}");
        press(&mut model, &[KeyCode::Enter]);
        let store = drawn(&model, size, &Theme::PLAIN);
        assert!(store[0].contains("sessions  strict, 500 keys"), "{store:#?}");
        let has = |text: &str| store.iter().any(|line| line.contains(text));
        for text in ["50.0% hit", "memory ", "# live ", "segments of 256K:", "queue      jobs/free: 10 of 10", "PID"] {
            assert!(has(text), "{text}: {store:#?}");
        }
        assert!(size.0 < 80 || has(". free "), "{store:#?}");
        assert!(has(&std::process::id().to_string()), "{store:#?}");
        press(&mut model, &[KeyCode::Enter]);
        let process = drawn(&model, size, &Theme::PLAIN);
        let pid = format!("pid         {}, running", std::process::id());
        assert!(process.contains(&pid), "{process:#?}");
        let sets = process.iter().find(|line| line.starts_with("sets ")).unwrap();
        assert!(sets.ends_with(" 500"), "{sets}");
        assert_eq!(press(&mut model, &[KeyCode::Esc, KeyCode::Esc]), Then::Go);
        assert_eq!(model.screen, Screen::Stores);
    }
    let large = {
        press(&mut model, &[KeyCode::Enter]);
        drawn(&model, (200, 60), &Theme::PLAIN)
    };
    assert!(large.iter().any(|line| line.starts_with("log        events: ")), "{large:#?}");
    assert!(large.iter().any(|line| line.starts_with("feed       ")), "{large:#?}");
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted() {
    let scratch = Scratch::new("top");
    let (_stores, mut model) = stores(&scratch);
    press(&mut model, &[KeyCode::Enter]);
    for size in SIZES {
        assert_eq!(drawn(&model, size, &Theme::PLAIN), drawn(&model, size, &Theme::COLOURS));
    }
    assert!(has_colour(&model, &Theme::COLOURS) && !has_colour(&model, &Theme::PLAIN));
}

#[test]
fn keys_sort_filter_pause_and_explain() {
    let scratch = Scratch::new("top");
    let (stores, mut model) = stores(&scratch);
    let first = |model: &Model| drawn(model, (80, 24), &Theme::PLAIN)[2].split(' ').next().unwrap().to_string();
    assert_eq!(first(&model), "sessions");
    press(&mut model, &[KeyCode::Char('r')]);
    assert_eq!(first(&model), "pages");
    press(
        &mut model,
        &[KeyCode::Char('r'), KeyCode::Char('s'), KeyCode::Char('s'), KeyCode::Char('s'), KeyCode::Char('s')],
    );
    assert_eq!((model.sort, first(&model).as_str()), (Sort::Name, "pages"));
    press(&mut model, &[KeyCode::Char('/'), KeyCode::Char('s'), KeyCode::Char('e')]);
    assert!(drawn(&model, (80, 24), &Theme::PLAIN)[23].starts_with("filter: se_"));
    press(&mut model, &[KeyCode::Enter]);
    assert_eq!((first(&model).as_str(), model.lines()), ("sessions", 1));
    press(&mut model, &[KeyCode::Esc]);
    assert_eq!(model.lines(), 2);
    press(&mut model, &[KeyCode::Char('p')]);
    assert!(model.paused && drawn(&model, (80, 24), &Theme::PLAIN)[0].ends_with("PAUSED"));
    press(&mut model, &[KeyCode::Char('h')]);
    assert!(drawn(&model, (80, 24), &Theme::PLAIN).iter().any(|line| line.contains("sort by the next column")));
    press(&mut model, &[KeyCode::Char('x')]);
    assert!(!model.is_help);
    assert_eq!(press(&mut model, &[KeyCode::Char('q')]), Then::Quit);
    assert_eq!(apply(&mut model, KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Then::Quit);
    // A store that was removed is said to be when it is on the screen.
    model.screen = Screen::Store(scratch.path().join("none.mere"));
    assert!(drawn(&model, (80, 24), &Theme::PLAIN)[1].contains("removed"));
    drop(stores);
}

#[test]
fn too_small_a_screen_says_so() {
    let scratch = Scratch::new("top");
    let (_stores, model) = stores(&scratch);
    assert!(drawn(&model, (40, 10), &Theme::PLAIN)[0].starts_with("40x10: too small"));
    drawn(&model, (1, 1), &Theme::PLAIN);
}

#[test]
fn of_a_long_list_the_chosen_line_is_seen() {
    assert_eq!(visible(5, 0, 10), 0..5);
    assert_eq!(visible(50, 9, 10), 0..10);
    assert_eq!(visible(50, 10, 10), 1..11);
    assert_eq!(visible(50, 99, 10), 40..50);
    assert_eq!(visible(0, 3, 0), 0..0);
    assert_eq!((cut("abc", 3).as_str(), cut("abcd", 3).as_str()), ("abc", "ab>"));
}
