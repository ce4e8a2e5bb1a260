//! Clients, put together by process.

use hashmere_engine::{ClientActivity, Figures, PinActivity};
use hashmere_os::process;

/// What a process does, as far as the system tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcessState {
    /// It runs or sleeps.
    Running,
    /// It is stopped by a signal or a debugger: what it holds is held until it goes on.
    Stopped,
    /// It has crashed or was killed. The next client to need what it held repairs it.
    Crashed,
    /// It lives; more is not to be seen, because it is in another PID namespace or another user's.
    Alive,
}

impl ProcessState {
    /// In lower case, as it is printed.
    pub fn name(self) -> &'static str {
        match self {
            ProcessState::Running => "running",
            ProcessState::Stopped => "stopped",
            ProcessState::Crashed => "crashed",
            ProcessState::Alive => "alive",
        }
    }
}

/// A process that has the store open for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id, in its own PID namespace.
    pub pid: u32,
    /// Its name when it opened the store, at most 16 bytes.
    pub name: String,
    /// Its command line; the name if that is not to be seen.
    pub command: String,
    /// What it does.
    pub state: ProcessState,
    /// When its first client opened the store, in milliseconds since 1970.
    pub since_ms: u64,
    /// Client slots that it has, one for each thread that writes.
    pub slots: Vec<u32>,
    /// What its clients did. Each slot goes on counting where its former client stopped, so that only differences tell
    /// something of this process: [`Snapshot::since`](crate::Snapshot::since).
    pub figures: Figures,
    /// Clients of it that had an operation under way.
    pub busy: u64,
    /// Locks of buckets that they held or were about to take.
    pub locks: u64,
    /// Clients of it that had a transaction under way.
    pub transactions: u64,
    /// Segments that its views and open regions hold back.
    pub pins: Vec<PinActivity>,
}

impl Process {
    /// Whether it is stopped or has crashed and other processes may have to wait for it, or repair what it left.
    pub fn is_stuck_holder(&self) -> bool {
        matches!(self.state, ProcessState::Stopped | ProcessState::Crashed)
            && (self.busy != 0 || self.locks != 0 || self.transactions != 0 || !self.pins.is_empty())
    }

    /// Views and open regions that pin something.
    pub fn views(&self) -> u64 {
        self.pins.iter().fold(0, |sum, pin| sum.saturating_add(pin.views))
    }

    /// Segments that would be free but for its pins.
    pub fn held_back(&self) -> u64 {
        self.pins.iter().filter(|pin| pin.state == hashmere_format::segment::State::PendingFree).count() as u64
    }
}

/// The processes of these clients, in the order of their lowest slots.
pub(crate) fn of_clients(clients: &[ClientActivity]) -> Vec<Process> {
    let mut processes: Vec<Process> = Vec::new();
    for client in clients {
        let crashed = client.is_alive == Some(false);
        // Two PID namespaces may have processes of one id; different names tell most of them apart. One that has
        // crashed is not put together with a living one that has its id now.
        let same = |p: &&mut Process| {
            p.pid == client.pid && p.name == client.name && (p.state == ProcessState::Crashed) == crashed
        };
        match processes.iter_mut().find(same) {
            Some(process) => add(process, client),
            None => processes.push(first(client, crashed)),
        }
    }
    processes
}

fn first(client: &ClientActivity, crashed: bool) -> Process {
    let (state, command) = if crashed { (ProcessState::Crashed, None) } else { seen(client) };
    Process {
        pid: client.pid,
        name: client.name.clone(),
        command: command.unwrap_or_else(|| client.name.clone()),
        state,
        since_ms: client.since_ms,
        slots: vec![client.slot],
        figures: client.figures,
        busy: u64::from(client.is_busy),
        locks: client.locks,
        transactions: u64::from(client.in_transaction),
        pins: client.pins.clone(),
    }
}

fn add(process: &mut Process, client: &ClientActivity) {
    process.since_ms = process.since_ms.min(client.since_ms);
    process.slots.push(client.slot);
    process.figures = process.figures.with(client.figures, u64::wrapping_add);
    process.busy += u64::from(client.is_busy);
    process.locks += client.locks;
    process.transactions += u64::from(client.in_transaction);
    process.pins.extend_from_slice(&client.pins);
}

/// State and command line of a living client's process, if the process of that id here is the one: it has its name.
fn seen(client: &ClientActivity) -> (ProcessState, Option<String>) {
    match process::describe(client.pid) {
        Some(found) if client.name.starts_with(&found.name) || found.name.starts_with(&client.name) => {
            let stopped = matches!(found.state, 'T' | 't');
            let state = if stopped { ProcessState::Stopped } else { ProcessState::Running };
            (state, process::command_line(client.pid))
        }
        _ => (ProcessState::Alive, None),
    }
}
