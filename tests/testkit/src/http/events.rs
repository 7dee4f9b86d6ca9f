//! Server-sent events, as they come over one connection.

use std::io;
use std::time::Duration;

use super::connection::Connection;
use super::message::Response;

/// One event. A comment is none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Event {
    /// Its id, if it has one of its own.
    pub id: Option<String>,
    /// Its name; `message` if it has none.
    pub name: String,
    /// Its data, lines joined by `\n`.
    pub data: String,
}

/// See the module.
pub struct Events {
    connection: Connection,
    head: Response,
    text: String,
    ended: bool,
}

impl Events {
    pub(super) fn new(connection: Connection, head: Response) -> io::Result<Self> {
        Ok(Self { connection, ended: !head.is_success(), head, text: String::new() })
    }

    /// The head of the response; with its body, if it is a refusal.
    pub fn head(&self) -> &Response {
        &self.head
    }

    /// How long [`next`](Self::next) waits; longer than that is an error.
    pub fn set_wait(&mut self, wait: Duration) -> io::Result<()> {
        self.connection.set_wait(wait)
    }

    /// The next event; none when the server has ended the stream.
    #[allow(clippy::should_implement_trait, reason = "it may fail, and waits")]
    pub fn next(&mut self) -> io::Result<Option<Event>> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let event = parse(block);
                self.text = rest.to_owned();
                if event.is_some() {
                    return Ok(event);
                }
            } else if self.ended {
                return Ok(None);
            } else {
                match self.connection.chunk()? {
                    Some(chunk) => self.text += &String::from_utf8_lossy(&chunk).replace("\r\n", "\n"),
                    None => self.ended = true,
                }
            }
        }
    }
}

fn parse(block: &str) -> Option<Event> {
    let mut event = Event { name: "message".to_owned(), ..Event::default() };
    let mut data: Vec<&str> = Vec::new();
    let mut named = false;
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = Some(value.to_owned()),
            "event" => {
                event.name = value.to_owned();
                named = true;
            }
            "data" => data.push(value),
            _ => {}
        }
    }
    event.data = data.join("\n");
    (named || !data.is_empty()).then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_ids_names_and_lines_of_data() {
        let event = parse("id: 7\nevent: lagged\ndata: {\"a\":\ndata: 1}").expect("an event");
        assert_eq!(
            (event.id.as_deref(), event.name.as_str(), event.data.as_str()),
            (Some("7"), "lagged", "{\"a\":\n1}")
        );
        assert_eq!(parse("data:x").map(|event| (event.name, event.data)), Some(("message".into(), "x".into())));
        assert_eq!(parse(": only a comment"), None);
    }
}
