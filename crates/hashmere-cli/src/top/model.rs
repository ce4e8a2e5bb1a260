//! What `top` shows: stores with their last two snapshots, and what the user chose to see of them.

use crate::failure::Failure;
use hashmere::Store;
use hashmere_observe::{Observer, OperationRates, Process, Rates, Snapshot};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which stores are shown.
pub enum Target {
    /// These, which must be there.
    Named(Vec<PathBuf>),
    /// All in the namespace folder, also those that come later.
    Namespace,
}

impl Target {
    /// These stores; none named: all.
    pub fn new(named: Vec<PathBuf>) -> Result<Target, Failure> {
        Ok(if named.is_empty() { Target::Namespace } else { Target::Named(named) })
    }
}

/// A store that is shown.
pub struct Shown {
    observer: Observer,
    /// The last snapshot.
    pub now: Snapshot,
    /// What it brought since the one before; of the first one nothing.
    pub rates: Rates,
}

impl Shown {
    fn new(observer: Observer) -> Shown {
        let now = observer.snapshot();
        let rates = now.since(&now);
        Shown { observer, now, rates }
    }

    fn refresh(&mut self) {
        let now = self.observer.snapshot();
        self.rates = now.since(&self.now);
        self.now = now;
    }
}

/// What is on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Screen {
    /// The list of stores.
    Stores,
    /// One store.
    Store(PathBuf),
    /// One process of a store, by id and name.
    Process(PathBuf, u32, String),
}

/// What lists are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// All operations a second.
    Operations,
    /// Reads a second.
    Reads,
    /// Sets and deletes a second.
    Writes,
    /// Lock waits a second.
    Waits,
    /// Name of the store or process.
    Name,
}

impl Sort {
    /// All orders, as they follow each other when the user asks for the next.
    pub const ALL: [Sort; 5] = [Sort::Operations, Sort::Reads, Sort::Writes, Sort::Waits, Sort::Name];

    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Operations => "operations",
            Sort::Reads => "reads",
            Sort::Writes => "writes",
            Sort::Waits => "lock waits",
            Sort::Name => "name",
        }
    }

    fn figure(self, rates: &OperationRates) -> f64 {
        match self {
            Sort::Operations => rates.operations(),
            Sort::Reads => rates.reads(),
            Sort::Writes => rates.sets + rates.deletes,
            Sort::Waits => rates.lock_waits,
            Sort::Name => 0.0,
        }
    }
}

/// All that is shown.
pub struct Model {
    target: Target,
    /// Time between two looks.
    pub interval: Duration,
    /// The stores.
    pub stores: Vec<Shown>,
    /// What is on the screen.
    pub screen: Screen,
    /// What lists are sorted by.
    pub sort: Sort,
    /// Smallest first.
    pub reversed: bool,
    /// Only what contains this is listed.
    pub filter: String,
    /// The filter is being typed.
    pub is_typing: bool,
    /// No further snapshots are taken.
    pub paused: bool,
    /// The keys are explained.
    pub is_help: bool,
    /// The line of the list that is chosen.
    pub chosen: usize,
}

impl Model {
    /// These stores as they are now.
    pub fn new(target: Target, interval: Duration) -> Result<Model, Failure> {
        let mut model = Model {
            target,
            interval,
            stores: Vec::new(),
            screen: Screen::Stores,
            sort: Sort::Operations,
            reversed: false,
            filter: String::new(),
            is_typing: false,
            paused: false,
            is_help: false,
            chosen: 0,
        };
        model.find_stores()?;
        if let (Target::Named(names), [only]) = (&model.target, &model.stores[..]) {
            if names.len() == 1 {
                model.screen = Screen::Store(only.now.path.clone());
            }
        }
        Ok(model)
    }

    /// Takes another look at everything.
    pub fn refresh(&mut self) -> Result<(), Failure> {
        self.stores.iter_mut().for_each(Shown::refresh);
        self.find_stores()
    }

    /// Opens what is not open yet, and forgets what is gone.
    fn find_stores(&mut self) -> Result<(), Failure> {
        match &self.target {
            Target::Named(names) => {
                if self.stores.is_empty() {
                    for name in names {
                        self.stores.push(Shown::new(Observer::open(name)?));
                    }
                }
            }
            Target::Namespace => {
                let paths = namespace()?;
                // A name may have got another file: the one that is open is gone then.
                self.stores.retain(|shown| paths.contains(&shown.now.path) && !shown.observer.is_removed());
                for path in paths {
                    if !self.stores.iter().any(|shown| shown.now.path == path) {
                        // What cannot be opened is no store, or not ours.
                        self.stores.extend(Observer::open(&path).ok().map(Shown::new));
                    }
                }
            }
        }
        Ok(())
    }

    /// The stores in the order in which they are listed.
    pub fn listed_stores(&self) -> Vec<&Shown> {
        let mut listed: Vec<&Shown> = self.stores.iter().filter(|s| s.now.name().contains(&self.filter)).collect();
        self.sort(&mut listed, |shown| (shown.now.name(), &shown.rates.total));
        listed
    }

    /// The processes of a store in the order in which they are listed.
    pub fn listed_processes<'a>(&self, store: &'a Shown) -> Vec<(&'a Process, &'a OperationRates)> {
        let all = store.now.processes.iter().zip(&store.rates.processes);
        let passes = |p: &Process| p.command.contains(&self.filter) || p.pid.to_string().contains(&self.filter);
        let mut listed: Vec<_> = all.filter(|(process, _)| passes(process)).collect();
        self.sort(&mut listed, |(process, rates)| (process.name.clone(), rates));
        listed
    }

    fn sort<'a, T>(&self, listed: &mut [T], of: impl Fn(&T) -> (String, &'a OperationRates)) {
        listed.sort_by(|a, b| {
            let ((name_a, rates_a), (name_b, rates_b)) = (of(a), of(b));
            // Most first; what is alike, by name.
            let order = self.sort.figure(rates_b).total_cmp(&self.sort.figure(rates_a)).then(name_a.cmp(&name_b));
            if self.reversed {
                order.reverse()
            } else {
                order
            }
        });
    }

    /// The store on the screen; `None`: it is the list, or the store is gone.
    pub fn store(&self) -> Option<&Shown> {
        match &self.screen {
            Screen::Stores => None,
            Screen::Store(path) | Screen::Process(path, ..) => self.stores.iter().find(|s| s.now.path == *path),
        }
    }

    /// How many lines the list on the screen has.
    pub fn lines(&self) -> usize {
        match (&self.screen, self.store()) {
            (Screen::Stores, _) => self.listed_stores().len(),
            (Screen::Store(_), Some(store)) => self.listed_processes(store).len(),
            _ => 0,
        }
    }

    /// Goes into the line that is chosen.
    pub fn enter(&mut self) {
        let next = match (&self.screen, self.store()) {
            (Screen::Stores, _) => self.listed_stores().get(self.chosen).map(|s| Screen::Store(s.now.path.clone())),
            (Screen::Store(path), Some(store)) => {
                let listed = self.listed_processes(store);
                listed.get(self.chosen).map(|(p, _)| Screen::Process(path.clone(), p.pid, p.name.clone()))
            }
            _ => None,
        };
        if let Some(next) = next {
            self.show(next);
        }
    }

    /// Goes back out; `false`: there is nothing outside of what is shown.
    pub fn leave(&mut self) -> bool {
        let back = match &self.screen {
            Screen::Process(path, ..) => Screen::Store(path.clone()),
            Screen::Store(_) => Screen::Stores,
            Screen::Stores => return false,
        };
        self.show(back);
        true
    }

    fn show(&mut self, screen: Screen) {
        self.screen = screen;
        self.chosen = 0;
        self.filter.clear();
    }
}

/// The files in the namespace folder.
fn namespace() -> Result<Vec<PathBuf>, Failure> {
    let sample = Store::path_of("any")?;
    let folder = sample.parent().unwrap_or(Path::new("/"));
    let failed = |e| Failure::io(format!("read the folder {}", folder.display()), &e);
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.retain(|path| path.extension() == sample.extension());
    paths.sort();
    Ok(paths)
}
