//! From target and method to what is done.

use super::head::{decode, Body, Head, Method};
use super::pages::{self, Page};
use super::reply::{Answer, Refusal, TEXT};
use super::{bulk, figures, guard, listing, record, status};
use crate::metrics;
use crate::turn::Turn;

/// What a request is for.
#[derive(Debug)]
pub enum Route {
    /// One key.
    Record(Vec<u8>),
    /// The list of keys.
    Listing,
    /// Several operations.
    Bulk,
    /// The stream of changes.
    Changes,
    /// Metrics.
    Metrics,
    /// The figures of the dashboard.
    Status,
    /// Its hot keys.
    Hot,
    /// The keys that take the room.
    Big,
    /// The last lines of a log.
    Log,
    /// A file of the dashboard.
    Page(&'static Page),
}

/// Finds the resource, and checks all that can be checked without the body.
pub fn admit(turn: &Turn<'_>, head: &Head<'_>) -> Result<Route, Refusal> {
    let page = pages::find(head.path);
    guard::check(turn.server, head, page.is_some())?;
    let route = match page {
        Some(page) => Route::Page(page),
        None => of(head.path)?,
    };
    let (allowed, list): (&[Method], &'static str) = match route {
        Route::Record(_) => {
            (&[Method::Get, Method::Head, Method::Put, Method::Post, Method::Delete], "GET, HEAD, PUT, POST, DELETE")
        }
        Route::Bulk => (&[Method::Post], "POST"),
        _ => (&[Method::Get, Method::Head], "GET, HEAD"),
    };
    if !allowed.contains(&head.method) {
        let header = format!("Allow: {list}\r\n").into();
        return Err(Refusal { header, ..Refusal::new(405, format!("this resource has {list}")) });
    }
    let takes_body = matches!(head.method, Method::Put | Method::Post);
    match head.body {
        Body::None if takes_body => return Err(Refusal::new(411, "a value has a Content-Length, or chunks")),
        Body::None | Body::Length(0) => {}
        _ if !takes_body => return Err(Refusal::new(400, "this method has no body")),
        _ => {}
    }
    // Which bulk requests only read is known when they are read.
    if !head.method.is_read() && !matches!(route, Route::Bulk) {
        guard::check_write(turn.server)?;
    }
    if matches!(route, Route::Bulk) && !head.fields.content_type.is_some_and(is_json) {
        return Err(Refusal::new(415, "a bulk request is application/json"));
    }
    Ok(route)
}

fn is_json(kind: &[u8]) -> bool {
    let end = memchr::memchr(b';', kind).unwrap_or(kind.len());
    kind[..end].trim_ascii().eq_ignore_ascii_case(b"application/json")
}

fn of(path: &[u8]) -> Result<Route, Refusal> {
    if let Some(key) = path.strip_prefix(b"/store/") {
        return Ok(if key.is_empty() { Route::Listing } else { Route::Record(decode(key)?) });
    }
    match path {
        b"/store" => Ok(Route::Listing),
        b"/bulk" => Ok(Route::Bulk),
        b"/changes" => Ok(Route::Changes),
        b"/metrics" => Ok(Route::Metrics),
        b"/api/stats" => Ok(Route::Status),
        b"/api/hot" => Ok(Route::Hot),
        b"/api/big" => Ok(Route::Big),
        b"/api/log" => Ok(Route::Log),
        _ => Err(Refusal::new(
            404,
            "there are /, /store/KEY, /store/, /bulk, /changes, /metrics, /api/stats, /api/hot, /api/big and /api/log",
        )),
    }
}

impl Route {
    /// Performs a request and writes its reply, unless it is refused.
    pub fn run(self, turn: &mut Turn<'_>, head: &Head<'_>, body: &[u8], answer: &Answer<'_>) -> Result<(), Refusal> {
        match self {
            Route::Record(key) => record::run(turn, head, &key, body, answer),
            Route::Listing => listing::run(turn, head, answer),
            Route::Bulk => bulk::run(turn, body, answer),
            Route::Metrics => {
                let form = metrics::Form::of(head.fields.accept);
                let text = metrics::of_server(turn.server, form);
                answer.whole(&mut turn.out.bytes, 200, form.content_type(), text.as_bytes());
                Ok(())
            }
            Route::Status => {
                status::run(turn, answer);
                Ok(())
            }
            Route::Hot => guard::check_names(turn.server).and_then(|()| figures::hot(turn, answer)),
            Route::Big => guard::check_names(turn.server).and_then(|()| figures::big(turn, head, answer)),
            Route::Log => figures::log(turn, head, answer),
            Route::Page(page) => {
                page.write(&mut turn.out.bytes, answer);
                Ok(())
            }
            // Its head: the stream itself is opened by the connection.
            Route::Changes => {
                answer.whole(&mut turn.out.bytes, 200, TEXT, b"");
                Ok(())
            }
        }
    }
}
