//! One connection of a client of Redis: takes requests from the input and has them performed.

use super::lookup::Found;
use super::parse::{Args, Bounds, Parsed, Parser};
use super::reply::Reply;
use super::run::run;
use super::state::{self, refuse, Client, Silence, Step};
use super::table;
use crate::outbox::Outbox;
use crate::peers::State;
use crate::protocol::{Next, OUTPUT_MAX};
use crate::server::Server;
use crate::turn::Turn;

/// Bytes of a request that an error shows.
const SHOWN: usize = 128;

/// What a connection keeps.
#[derive(Debug)]
pub struct Resp {
    parser: Parser,
    client: Client,
    bulk_max: u64,
}

impl Resp {
    /// A new conversation.
    pub fn new(server: &Server) -> Resp {
        let client = Client::new(server.config.accounts.is_some(), table::TABLE);
        Resp { parser: Parser::default(), client, bulk_max: server.config.item_max }
    }

    /// Whether it receives messages.
    pub fn is_subscribed(&self) -> bool {
        self.client.subscription.is_some()
    }

    /// Moves messages into the outbox; `false` if there are none.
    pub fn take_messages(&self, out: &mut Outbox) -> bool {
        self.client.subscription.as_ref().is_some_and(|subscription| subscription.take(out))
    }

    /// Whether it is to be closed, for it does not take its messages.
    pub fn is_overrun(&self) -> bool {
        self.client.subscription.as_ref().is_some_and(super::pubsub::Subscription::is_overrun)
    }

    /// What `stats conns` shows of it, given what it needs next.
    pub fn state(&self, next: Next) -> State {
        match next {
            _ if self.is_subscribed() => State::Watch,
            _ if self.parser.is_skipping() => State::Swallow,
            Next::Input(wanted) if wanted > 0 => State::Value,
            Next::Output => State::Write,
            _ => State::Read,
        }
    }

    /// Whether no request is in progress.
    pub fn is_idle(&self) -> bool {
        self.parser.is_idle()
    }

    /// Consumes input; see [`Session::feed`](crate::Session::feed).
    pub fn feed(&mut self, turn: &mut Turn<'_>, input: &[u8]) -> (usize, Next) {
        self.client.enter(turn);
        let mut at = 0;
        loop {
            let rest = &input[at..];
            if rest.is_empty() {
                return (at, Next::Input(0));
            }
            if turn.out.len() >= OUTPUT_MAX {
                return (at, Next::Output);
            }
            let bounds = Bounds { locked: self.client.locked, bulk_max: self.bulk_max };
            match self.parser.parse(rest, bounds) {
                Parsed::Request => {
                    let step = request(&mut self.client, turn, self.parser.args(rest));
                    if step == Step::More {
                        return (at, Next::Output);
                    }
                    at += self.parser.finish();
                    if step == Step::Close {
                        return (at, Next::Close);
                    }
                }
                Parsed::Nothing(length) => at += length,
                Parsed::TooLarge(length) => {
                    at += length;
                    turn.counters.too_large.add(1);
                    self.client.abort();
                    let limit = self.bulk_max;
                    let text = format!("ERR an argument is longer than the item limit of {limit} bytes (-I)");
                    Reply { out: &mut turn.out.bytes, resp3: self.client.resp3 }.error(&text);
                }
                Parsed::Incomplete(wanted) => return (at, Next::Input(wanted)),
                Parsed::Error(text) => {
                    Reply { out: &mut turn.out.bytes, resp3: self.client.resp3 }.error(&format!("ERR {text}"));
                    return (input.len(), Next::Close);
                }
            }
        }
    }
}

/// Performs a request, and keeps silent about it if the client wants that.
fn request(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    if client.silence == Silence::Off {
        return perform(client, turn, args);
    }
    let mut unheard = Outbox::default();
    let mut quiet = Turn { out: &mut unheard, ..*turn };
    let was = client.silence;
    let step = perform(client, &mut quiet, args);
    if step != Step::More && client.silence == was && was == Silence::Next {
        client.silence = Silence::Off;
    }
    // `CLIENT REPLY ON` is answered.
    if client.silence == Silence::Off && was == Silence::On {
        turn.out.bytes.append(&mut unheard.bytes);
    }
    step
}

/// Performs a request.
fn perform(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    turn.counters.commands.add(1);
    let command = match table::find(args) {
        Found::Command(command) => command,
        Found::Unknown => return refuse(client, turn, &unknown(args)),
        Found::UnknownSub => return refuse(client, turn, &unknown_sub(args)),
    };
    if !command.takes(args.count()) {
        let text = format!("wrong number of arguments for '{}' command", command.name);
        if command.name == "exec" {
            client.discard();
            return refuse(client, turn, &format!("EXECABORT Transaction discarded because of: {text}"));
        }
        return refuse(client, turn, &format!("ERR {text}"));
    }
    if client.locked && !command.has(state::NO_AUTH) {
        return refuse(client, turn, "NOAUTH Authentication required.");
    }
    if client.is_only_subscriber() && !command.has(state::SUBSCRIBED) {
        let name = command.name;
        let text = format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in \
             this context"
        );
        return refuse(client, turn, &text);
    }
    if client.queue.is_some() && !command.has(state::NOT_QUEUED) {
        return super::transaction::queue(client, turn, command, args);
    }
    run(client, turn, command, args)
}

/// As text that ends at a zero, like Redis' own.
fn shown(bytes: &[u8], most: usize) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()).min(most);
    // An error is a line of bytes; what is no UTF-8 is replaced.
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn unknown(args: Args<'_>) -> String {
    let mut list = String::new();
    for arg in args.from(1) {
        if list.len() >= SHOWN {
            break;
        }
        list.push_str(&format!("'{}' ", shown(arg, SHOWN - list.len())));
    }
    format!("ERR unknown command '{}', with args beginning with: {list}", shown(args.at(0), SHOWN))
}

fn unknown_sub(args: Args<'_>) -> String {
    let name = shown(args.at(0), SHOWN).to_ascii_uppercase();
    format!("ERR unknown subcommand '{}'. Try {name} HELP.", shown(args.at(1), SHOWN))
}
