//! A broker that is a file: one line of JSON per message, for tools that tail files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use node::directory::owner_only;

use super::{Message, MessageNumber, Publish, PublishError};

/// Appends each message once to a file, and syncs it before the message leaves the store.
///
/// A line is `{"topic":…,"source":…,"commit":…,"ordinal":…,"payload":…}`; a payload that is not UTF-8 is `{"hex":"…"}`.
/// A line cut short by a crash is removed when the file is opened again.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// use statehouse::publish::{FileBroker, Publish};
/// let broker = FileBroker::open(&directory.path().join("messages"))?;
/// let house = statehouse::Options::default().publish_to(broker).open(directory.path().join("house"))?;
/// house.group("order-7").commit().publish("mails", "order 7 is paid").run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileBroker {
    state: Mutex<State>,
}

struct State {
    file: File,
    /// Where the last whole line ends.
    end: u64,
    taken: BTreeMap<String, MessageNumber>,
}

impl FileBroker {
    /// Opens the file, or creates it, for its owner only. A link is refused.
    pub fn open(path: &Path) -> io::Result<std::sync::Arc<Self>> {
        let mut file = owner_only::open_or_create(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut taken = BTreeMap::new();
        for line in text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let (source, number) =
                read_line(line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a line is not a message"))?;
            taken.insert(source, number);
        }
        file.set_len(whole as u64)?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            File::open(parent)?.sync_all()?;
        }
        let end = file.seek(SeekFrom::Start(whole as u64))?;
        Ok(std::sync::Arc::new(Self { state: Mutex::new(State { file, end, taken }) }))
    }
}

fn read_line(line: &[u8]) -> Option<(String, MessageNumber)> {
    let line: serde_json::Value = serde_json::from_slice(line).ok()?;
    let ordinal = u32::try_from(line["ordinal"].as_u64()?).ok()?;
    Some((line["source"].as_str()?.to_owned(), MessageNumber { commit: line["commit"].as_u64()?, ordinal }))
}

fn write_line(message: &Message<'_>) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let payload = match std::str::from_utf8(message.payload) {
        Ok(payload) => text(payload),
        Err(_) => {
            let hex = message.payload.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            format!(r#"{{"hex":"{hex}"}}"#)
        }
    };
    let MessageNumber { commit, ordinal } = message.number;
    let (topic, source) = (text(message.topic), text(message.source));
    format!(r#"{{"topic":{topic},"source":{source},"commit":{commit},"ordinal":{ordinal},"payload":{payload}}}"#) + "\n"
}

impl Publish for FileBroker {
    fn publish(&self, message: &Message<'_>) -> Result<(), PublishError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.taken.get(message.source).is_some_and(|last| *last >= message.number) {
            return Ok(());
        }
        let line = write_line(message);
        let end = state.end;
        // The next write overwrites the remains of a failed one.
        let written = state.file.seek(SeekFrom::Start(end)).and_then(|_| state.file.write_all(line.as_bytes()));
        let written = written.and_then(|()| state.file.sync_data());
        written.map_err(|error| PublishError { topic: message.topic.to_owned(), reason: error.to_string() })?;
        state.end += line.len() as u64;
        state.taken.insert(message.source.to_owned(), message.number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'message>(payload: &'message [u8], commit: u64) -> Message<'message> {
        Message::new("t", payload, "s", MessageNumber { commit, ordinal: 0 })
    }

    #[test]
    fn a_message_is_in_the_file_once_and_a_torn_line_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("messages");
        let broker = FileBroker::open(&path).expect("open");
        for commit in [1, 2, 2, 1] {
            broker.publish(&message(b"a\nb", commit)).expect("publish");
        }
        drop(broker);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("open");
        file.write_all(br#"{"topic":"t","sour"#).expect("a torn line");
        drop(file);
        let broker = FileBroker::open(&path).expect("reopen");
        broker.publish(&message(b"again", 2)).expect("publish");
        broker.publish(&message(&[0xff], 3)).expect("publish");
        let text = std::fs::read_to_string(&path).expect("read");
        let numbers: Vec<_> =
            text.lines().map(|line| read_line(line.as_bytes()).expect("a message").1.commit).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert!(text.ends_with("\"payload\":{\"hex\":\"ff\"}}\n"), "{text}");
    }
}
