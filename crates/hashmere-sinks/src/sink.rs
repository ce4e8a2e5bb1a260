//! What a sink is, and the place that it keeps.

use hashmere_feed::{BadToken, Change, Event, Token};
use std::fmt;
use std::io;
use std::str::FromStr;

/// How far a sink has come. Its text is that of the token; within a transaction, `+` and the number of the last change
/// that the sink has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Where to resume.
    pub token: Token,
    /// The transaction there comes whole again: changes up to this one are passed over.
    pub part: Option<u32>,
}

impl Position {
    /// Behind an event; `None`: nothing that was before counts, so a consumer begins with every key.
    pub fn behind(event: &Event) -> Option<Position> {
        let token = *event.token()?;
        let part = match event {
            Event::Change(Change { transaction: Some(part), .. }) if part.id == token.position() => Some(part.index),
            _ => None,
        };
        Some(Position { token, part })
    }

    /// Whether the event is one that the sink has already, though a source that resumes here delivers it.
    pub fn has(&self, event: &Event) -> bool {
        match (self.part, event) {
            (Some(last), Event::Change(Change { transaction: Some(part), .. })) => {
                part.id == self.token.position() && part.index <= last
            }
            _ => false,
        }
    }

    /// Text of a position or of none, as sinks keep it.
    pub(crate) fn text(position: Option<Position>, out: &mut Vec<u8>) {
        let Some(position) = position else { return };
        position.token.write(out);
        if let Some(part) = position.part {
            out.extend_from_slice(format!("+{part}").as_bytes());
        }
    }

    /// What [`text`](Self::text) wrote.
    pub(crate) fn from_text(text: &[u8]) -> Result<Option<Position>, SinkError> {
        if text.is_empty() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(text);
        text.parse().map(Some).map_err(|error: BadToken| SinkError::Refused(format!("the position there: {error}")))
    }
}

impl From<Token> for Position {
    fn from(token: Token) -> Position {
        Position { token, part: None }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.token)?;
        self.part.map_or(Ok(()), |part| write!(f, "+{part}"))
    }
}

impl FromStr for Position {
    type Err = BadToken;

    fn from_str(text: &str) -> Result<Position, BadToken> {
        if let Some((token, part)) = text.rsplit_once('+') {
            if let Ok(part) = part.parse() {
                return Ok(Position { token: token.parse()?, part: Some(part) });
            }
        }
        Ok(Position::from(text.parse::<Token>()?))
    }
}

/// Why events did not reach a sink.
#[derive(Debug)]
#[non_exhaustive]
pub enum SinkError {
    /// It is not there, or cannot take anything at the moment: tried again.
    Lost(io::Error),
    /// It does not take this, and will not: the text says what to change.
    Refused(String),
    /// Another process feeds it too, so neither knows what it has.
    Foreign(String),
}

impl SinkError {
    /// Whether trying again may help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, SinkError::Lost(_))
    }

    /// The position is to be looked at again, now: nothing is wrong with the sink.
    pub(crate) fn again(text: impl Into<String>) -> SinkError {
        SinkError::Lost(io::Error::new(io::ErrorKind::Interrupted, text.into()))
    }

    pub(crate) fn is_again(&self) -> bool {
        matches!(self, SinkError::Lost(error) if error.kind() == io::ErrorKind::Interrupted)
    }

    pub(crate) fn lost(text: impl Into<String>) -> SinkError {
        SinkError::Lost(io::Error::other(text.into()))
    }
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SinkError::Lost(error) => write!(f, "the sink cannot be reached: {error}"),
            SinkError::Refused(text) => write!(f, "the sink refuses: {text}"),
            SinkError::Foreign(text) => {
                write!(f, "another process writes to the sink: {text}; end one of them, or give each a sink of its own")
            }
        }
    }
}

impl std::error::Error for SinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SinkError::Lost(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for SinkError {
    fn from(error: io::Error) -> SinkError {
        SinkError::Lost(error)
    }
}

/// Where events go.
///
/// After an error a sink is asked for its [`position`](Self::position) before anything else; that connects again.
pub trait Sink {
    /// How far it has come, from the data themselves. `None`: it has nothing yet, or is to begin with every key.
    ///
    /// # Errors
    /// [`SinkError`].
    fn position(&mut self) -> Result<Option<Position>, SinkError>;

    /// Hands over events, in order. When it returns, those of *earlier* calls are stored; these may be under way.
    ///
    /// # Errors
    /// [`SinkError`]: of the events that were under way, a beginning is stored, perhaps an empty one.
    fn send(&mut self, events: &[Event]) -> Result<(), SinkError>;

    /// Waits until everything that was handed over is stored, as safely as the sink stores things. Called now and then
    /// also when there is nothing to wait for, so that a connection is kept alive.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn flush(&mut self) -> Result<(), SinkError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use hashmere::Version;
    use hashmere_feed::{Operation, TransactionPart};

    #[test]
    fn positions_are_text_and_back() {
        let token: Token = "hm1-0001020304050607ffffffffffffffff-1795000000000-3-77".parse().unwrap();
        for part in [None, Some(0), Some(u32::MAX)] {
            let position = Position { token, part };
            let mut text = Vec::new();
            Position::text(Some(position), &mut text);
            assert_eq!(position.to_string().as_bytes(), text);
            assert_eq!(Position::from_text(&text).unwrap(), Some(position));
        }
        assert_eq!(Position::from_text(b"").unwrap(), None);
        assert!(Position::from_text(b"+1").is_err() && Position::from_text(b"hm1").is_err());
    }

    #[test]
    fn within_a_transaction_a_position_has_its_changes_up_to_one() {
        let token: Token = "hm1-0001020304050607ffffffffffffffff-1-3-77".parse().unwrap();
        let change = |index| {
            let mut change = Change::new(Operation::Set, vec![b'k'], Version(1), token);
            change.transaction = Some(TransactionPart { id: 77, index, len: 3 });
            Event::Change(change)
        };
        let position = Position::behind(&change(1)).unwrap();
        assert_eq!(position.part, Some(1));
        assert!(position.has(&change(0)) && position.has(&change(1)) && !position.has(&change(2)));
    }
}
