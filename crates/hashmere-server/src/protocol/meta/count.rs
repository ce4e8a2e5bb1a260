//! `ma`: counting with flags.

use super::count::{Count, Counted, Outcome};
use super::meta::Request;
use super::put::failure;
use super::{exptime, Context};
use crate::protocol::{meta, number};
use crate::server::now_ms;

impl Context<'_> {
    /// Performs `ma`.
    pub fn meta_count(&mut self, request: &Request<'_>) {
        let flags = &request.flags;
        let up = match flags.mode {
            None | Some(b'I' | b'+') => true,
            Some(b'D' | b'-') => false,
            Some(_) => return self.out.line("CLIENT_ERROR invalid mode for ma M token"),
        };
        let count = Count {
            by: flags.delta,
            up,
            create: flags.vivify.map(|exptime| (flags.initial, exptime::ttl(flags.last_exptime.unwrap_or(exptime)))),
            only: flags.compare,
            ttl: flags.ttl.map(exptime::ttl),
            version: flags.version,
        };
        match self.count(request.key.bytes(), count) {
            Outcome::Done(counted) => self.reply_counted(request, &counted),
            Outcome::NotFound => self.reply_uncounted(request, "NF"),
            Outcome::Exists => self.reply_uncounted(request, "EX"),
            Outcome::NotANumber => {
                self.out.line("CLIENT_ERROR cannot increment or decrement non-numeric value");
            }
            Outcome::Failed(error) => self.out.line(&failure(&error)),
        }
    }

    fn reply_uncounted(&mut self, request: &Request<'_>, text: &str) {
        self.out.text(text);
        request.finish(&mut self.out.bytes, |_, _| {});
    }

    fn reply_counted(&mut self, request: &Request<'_>, counted: &Counted) {
        let flags = &request.flags;
        if request.is_quiet() {
            return;
        }
        let now = now_ms();
        let deadline = |exptime: Option<i64>| exptime.and_then(|exptime| exptime::deadline(exptime::ttl(exptime), now));
        let mut digits = Vec::with_capacity(20);
        number::write(counted.number, &mut digits);
        let out = &mut self.out.bytes;
        if flags.has(b'v') {
            out.extend_from_slice(b"VA ");
            number::write(digits.len() as u64, out);
        } else {
            out.extend_from_slice(b"HD");
        }
        let version = if self.server.config.cas { counted.version.0 } else { 0 };
        // A time shows from the flag on that gives it.
        let mut shown = if counted.created { None } else { counted.expires_at_ms };
        request.finish(out, |letter, out| match letter {
            b'c' => meta::flag(b'c', version, out),
            b'N' if counted.created => shown = deadline(flags.vivify),
            b'T' => shown = deadline(flags.ttl),
            b't' => match exptime::remaining(shown, now) {
                Some(left) => meta::flag(b't', left, out),
                None => out.extend_from_slice(b" t-1"),
            },
            _ => {}
        });
        if flags.has(b'v') {
            out.extend_from_slice(&digits);
            out.extend_from_slice(b"\r\n");
        }
    }
}
