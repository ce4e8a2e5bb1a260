//! `COMMAND`: what the table of commands says.

use super::keys::SYNTAX;
use super::lookup::{self, Found};
use super::parse::Args;
use super::reply::Reply;
use super::state::{self, Client, Command, Step};
use crate::turn::Turn;

/// The names of flags, as Redis writes them.
const FLAGS: &[(u16, &str)] = &[
    (state::WRITE, "write"),
    (state::READ, "readonly"),
    (state::DENY_OOM, "denyoom"),
    (state::ADMIN, "admin"),
    (state::PUBSUB, "pubsub"),
    (state::FAST, "fast"),
    (state::NO_AUTH, "no_auth"),
    (state::NO_MULTI, "no_multi"),
];

fn is_sub(command: &Command) -> bool {
    command.name.contains('|')
}

fn subs(commands: &'static [Command], command: &'static Command) -> impl Iterator<Item = &'static Command> + Clone {
    let of = move |other: &&Command| other.name.split_once('|').is_some_and(|(name, _)| name == command.name);
    commands.iter().filter(of)
}

fn main(commands: &'static [Command]) -> impl Iterator<Item = &'static Command> + Clone {
    commands.iter().filter(|command| !is_sub(command))
}

/// The lines of a `HELP`: the subcommands, with what they do.
pub fn help_of(client: &Client, turn: &mut Turn<'_>, name: &str) {
    let lines: Vec<String> = client
        .commands
        .iter()
        .filter_map(|command| Some((command.name.split_once('|')?, command.summary)))
        .filter(|((of, sub), _)| *of == name && *sub != "help")
        .flat_map(|((_, sub), summary)| [sub.to_ascii_uppercase(), format!("    {summary}")])
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    client.reply_to(turn).help(&name.to_ascii_uppercase(), &lines);
}

fn describe(commands: &'static [Command], reply: &mut Reply<'_>, command: &'static Command) {
    reply.array(10);
    reply.bulk(command.name.as_bytes());
    reply.integer(command.arity.into());
    let flags = FLAGS.iter().filter(|(flag, _)| command.has(*flag));
    reply.set(flags.clone().count());
    flags.for_each(|(_, name)| reply.simple(name));
    let (first, last, step) = command.keys;
    [first, last, step].into_iter().for_each(|number| reply.integer(number.into()));
    // Categories of ACLs, hints for clusters, specifications of keys: none.
    reply.set(0);
    reply.array(0);
    reply.array(0);
    let subs = subs(commands, command);
    reply.array(subs.clone().count());
    subs.for_each(|sub| describe(commands, reply, sub));
}

/// `COMMAND`.
pub fn all(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    let reply = &mut client.reply_to(turn);
    reply.array(main(client.commands).count());
    main(client.commands).for_each(|command| describe(client.commands, reply, command));
    Step::Done
}

/// A command by a name such as `get` or `client|id`.
fn by_name(client: &Client, name: &[u8]) -> Option<&'static Command> {
    lookup::by_name(client.commands, name, b"")
}

/// `COMMAND INFO [name ...]`.
pub fn some(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    if args.count() == 2 {
        return all(client, turn, args);
    }
    let reply = &mut client.reply_to(turn);
    reply.array(args.count() - 2);
    for name in args.from(2) {
        match by_name(client, name) {
            Some(command) => describe(client.commands, reply, command),
            None => reply.null_array(),
        }
    }
    Step::Done
}

/// `COMMAND COUNT`.
pub fn count(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    client.reply_to(turn).integer(main(client.commands).count() as i64);
    Step::Done
}

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]`.
pub fn list(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let pattern = match args.count() {
        2 => None,
        5 if args.is(2, "filterby") && args.is(3, "pattern") => Some(args.at(4)),
        // There are no modules and no categories, so there are no commands of one.
        5 if args.is(2, "filterby") && (args.is(3, "module") || args.is(3, "aclcat")) => Some(&b""[..]),
        _ => {
            client.reply_to(turn).error(SYNTAX);
            return Step::Done;
        }
    };
    let passes = |name: &str| pattern.is_none_or(|pattern| super::glob::matches(pattern, name.as_bytes()));
    let names: Vec<&str> = client.commands.iter().map(|command| command.name).filter(|name| passes(name)).collect();
    let reply = &mut client.reply_to(turn);
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name.as_bytes()));
    Step::Done
}

fn document(commands: &'static [Command], reply: &mut Reply<'_>, command: &'static Command) {
    let subs = subs(commands, command);
    let has_subs = subs.clone().next().is_some();
    reply.bulk(command.name.as_bytes());
    reply.map(3 + usize::from(has_subs));
    for (name, value) in [("summary", command.summary), ("since", command.since), ("group", command.group)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    if has_subs {
        reply.bulk(b"subcommands");
        reply.map(subs.clone().count());
        subs.for_each(|sub| document(commands, reply, sub));
    }
}

/// `COMMAND DOCS [name ...]`.
pub fn docs(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let wanted: Vec<&Command> = match args.count() {
        2 => main(client.commands).collect(),
        _ => args.from(2).filter_map(|name| by_name(client, name)).collect(),
    };
    let reply = &mut client.reply_to(turn);
    reply.map(wanted.len());
    wanted.into_iter().for_each(|command| document(client.commands, reply, command));
    Step::Done
}

/// `COMMAND GETKEYS command ...`
pub fn getkeys(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let rest: Vec<&[u8]> = args.from(2).collect();
    let (bytes, mut ranges) = (rest.concat(), Vec::new());
    rest.iter().fold(0, |start, arg| {
        ranges.push(start..start + arg.len());
        start + arg.len()
    });
    let asked = Args::new(&bytes, &ranges);
    let reply = &mut client.reply_to(turn);
    let Found::Command(command) = lookup::find(client.commands, asked) else {
        reply.error("ERR Invalid command specified");
        return Step::Done;
    };
    if command.keys.0 == 0 {
        reply.error("ERR The command has no key arguments");
    } else if !command.takes(asked.count()) {
        reply.error("ERR Invalid number of arguments specified for command");
    } else {
        let keys: Vec<usize> = command.key_places(asked.count()).collect();
        reply.array(keys.len());
        keys.into_iter().for_each(|place| reply.bulk(asked.at(place)));
    }
    Step::Done
}

/// `COMMAND HELP`.
pub fn help(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    help_of(client, turn, "command");
    Step::Done
}
