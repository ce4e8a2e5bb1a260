//! The commands on a connection.

use super::about::About;
use super::keys::{NOT_AN_INTEGER, SYNTAX};
use super::lock::lock;
use super::number::integer;
use super::parse::Args;
use super::state::{refuse, Client, Queue, Silence, Step};
use crate::peers::Peer;
use crate::turn::Turn;
use std::fmt::Write;

/// Whether a name can be shown in a list: printed characters, no space.
pub fn is_name(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}

/// `PING [message]`.
pub fn ping(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    if args.count() > 2 {
        return refuse(client, turn, "ERR wrong number of arguments for 'ping' command");
    }
    let only_subscriber = client.is_only_subscriber();
    let reply = &mut client.reply_to(turn);
    if only_subscriber {
        reply.array(2);
        reply.bulk(b"pong");
        reply.bulk(args.at(1));
    } else if args.count() == 1 {
        reply.simple("PONG");
    } else {
        reply.bulk(args.at(1));
    }
    Step::Done
}

/// `ECHO message`.
pub fn echo(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    client.reply_to(turn).bulk(args.at(1));
    Step::Done
}

/// `QUIT`.
pub fn quit(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    client.reply_to(turn).ok();
    Step::Close
}

/// `SELECT 0`.
pub fn select(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    match integer(args.at(1)).and_then(|number| i32::try_from(number).ok()) {
        Some(0) => client.reply_to(turn).ok(),
        Some(_) => client.reply_to(turn).error("ERR DB index is out of range"),
        None => client.reply_to(turn).error(NOT_AN_INTEGER),
    }
    Step::Done
}

/// `WAIT replicas timeout`.
pub fn wait(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    match (integer(args.at(1)), integer(args.at(2))) {
        (Some(_), Some(0..)) => client.reply_to(turn).integer(0),
        (Some(_), Some(_)) => client.reply_to(turn).error("ERR timeout is negative"),
        (None, _) => client.reply_to(turn).error(NOT_AN_INTEGER),
        (_, None) => client.reply_to(turn).error("ERR timeout is not an integer or out of range"),
    }
    Step::Done
}

/// `CLIENT ID`.
pub fn id(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    // The listeners have the first numbers, so it is above zero.
    let id = turn.connection as i64;
    client.reply_to(turn).integer(id);
    Step::Done
}

/// `CLIENT GETNAME`.
pub fn getname(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    let name = client.name();
    client.reply_to(turn).bulk_or_null(Some(&name[..]).filter(|name| !name.is_empty()));
    Step::Done
}

/// `CLIENT SETNAME name`.
pub fn setname(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    if !is_name(args.at(2)) {
        let text = "ERR Client names cannot contain spaces, newlines or special characters.";
        client.reply_to(turn).error(text);
        return Step::Done;
    }
    client.set_name(args.at(2));
    client.reply_to(turn).ok();
    Step::Done
}

/// `CLIENT SETINFO LIB-NAME name`, `CLIENT SETINFO LIB-VER version`.
pub fn setinfo(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let (what, value) = (args.at(2).to_ascii_lowercase(), args.at(3));
    let shown = String::from_utf8_lossy(args.at(2)).into_owned();
    match what.as_slice() {
        b"lib-name" | b"lib-ver" if !is_name(value) => {
            let text = format!("ERR {shown} cannot contain spaces, newlines or special characters.");
            client.reply_to(turn).error(&text);
        }
        b"lib-name" => {
            client.note(|about| about.library = value.to_vec());
            client.reply_to(turn).ok();
        }
        b"lib-ver" => {
            client.note(|about| about.library_version = value.to_vec());
            client.reply_to(turn).ok();
        }
        _ => client.reply_to(turn).error(&format!("ERR Unrecognized option '{shown}'")),
    }
    Step::Done
}

/// `CLIENT NO-EVICT ON|OFF`, `CLIENT NO-TOUCH ON|OFF`.
pub fn no_evict(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    match args.is(2, "on") || args.is(2, "off") {
        true => client.reply_to(turn).ok(),
        false => client.reply_to(turn).error(SYNTAX),
    }
    Step::Done
}

/// `CLIENT REPLY ON|OFF|SKIP`.
pub fn reply(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    match args.at(2).to_ascii_lowercase().as_slice() {
        b"on" => {
            client.silence = Silence::Off;
            client.reply_to(turn).ok();
        }
        b"off" => client.silence = Silence::On,
        b"skip" if client.silence == Silence::Off => client.silence = Silence::Next,
        b"skip" => {}
        _ => client.reply_to(turn).error(SYNTAX),
    }
    Step::Done
}

/// The line of a connection.
fn line(turn: &Turn<'_>, peer: &Peer, about: &About, own: Option<&Client>) -> String {
    use std::sync::atomic::Ordering;
    let idle = turn.now.saturating_sub(peer.active.load(Ordering::Relaxed));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (sub, psub) = own.and_then(|own| own.subscription.as_ref()).map_or((0, 0), |own| own.counts());
    let multi = own.and_then(|own| own.queue.as_ref()).map_or(-1, Queue::len);
    let flags = match own {
        Some(own) if own.queue.is_some() => "x",
        Some(own) if own.subscription.is_some() => "P",
        _ => "N",
    };
    let listener = peer.listener.strip_prefix("tcp:").unwrap_or(&peer.listener);
    let mut line = format!(
        "id={} addr={} laddr={listener} fd=-1 name={} age=0 idle={idle} flags={flags} db=0 sub={sub} psub={psub} ssub=0 \
         multi={multi} watch={} ",
        about.id,
        peer.place(),
        text(&about.name),
        own.map_or(0, |own| own.watched.len()),
    );
    // Writing to a string does not fail.
    let _ = write!(
        line,
        "cmd=NULL user={} redir=-1 resp={} lib-name={} lib-ver={}",
        text(&about.user),
        if about.resp3 { 3 } else { 2 },
        text(&about.library),
        text(&about.library_version),
    );
    line
}

/// `CLIENT INFO`.
pub fn info(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    let peers = turn.server.peers.list();
    let peer = peers.iter().find(|peer| peer.id == turn.connection);
    let about = client.about.clone();
    let text = match (peer, about) {
        (Some(peer), Some(about)) => line(turn, peer, &lock(&about), Some(client)) + "\n",
        _ => String::new(),
    };
    client.reply_to(turn).verbatim(&text);
    Step::Done
}

/// `CLIENT LIST [TYPE normal|master|replica|pubsub] [ID id ...]`.
pub fn list(client: &mut Client, turn: &mut Turn<'_>, args: Args<'_>) -> Step {
    let mut ids: Option<Vec<u64>> = None;
    let mut none = false;
    match args.count() {
        2 => {}
        4 if args.is(2, "type") => match args.at(3).to_ascii_lowercase().as_slice() {
            b"normal" => {}
            b"master" | b"slave" | b"replica" | b"pubsub" => none = true,
            _ => {
                let text = format!("ERR Unknown client type '{}'", String::from_utf8_lossy(args.at(3)));
                client.reply_to(turn).error(&text);
                return Step::Done;
            }
        },
        4.. if args.is(2, "id") => {
            let numbers = args.from(3).map(|text| integer(text).and_then(|id| u64::try_from(id).ok()));
            match numbers.collect::<Option<Vec<u64>>>() {
                Some(numbers) => ids = Some(numbers),
                None => {
                    client.reply_to(turn).error("ERR Invalid client ID");
                    return Step::Done;
                }
            }
        }
        _ => {
            client.reply_to(turn).error(SYNTAX);
            return Step::Done;
        }
    }
    let peers = turn.server.peers.list();
    let mut text = String::new();
    for about in turn.server.resp.clients().iter().filter(|_| !none) {
        let about = lock(about);
        let wanted = ids.as_ref().is_none_or(|ids| ids.contains(&about.id));
        if let Some(peer) = peers.iter().find(|peer| wanted && peer.id == about.id) {
            let own = (about.id == turn.connection).then_some(&*client);
            text += &line(turn, peer, &about, own);
            text.push('\n');
        }
    }
    client.reply_to(turn).verbatim(&text);
    Step::Done
}

/// `CLIENT HELP`.
pub fn help(client: &mut Client, turn: &mut Turn<'_>, _: Args<'_>) -> Step {
    super::command::help_of(client, turn, "client");
    Step::Done
}
