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
/// A line is `{"topic":…,"source":…,"history":"…","bucket":…,"number":…,"payload":…}`, with the history in hexadecimal; a
/// payload that is not UTF-8 is `{"hex":"…"}`. A line cut short by a crash is removed when the file is opened again. A
/// line of an earlier release has a `commit` and an `ordinal` instead of the history, the bucket and the number; it stays
/// as it is. A store that was restored from a backup publishes again what waited when the backup was taken.
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
    /// The last number taken from each history and bucket.
    taken: BTreeMap<(u64, u16), u64>,
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
            let number =
                read_line(line).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a line is not a message"))?;
            taken.extend(number.map(|MessageNumber { history, bucket, number }| ((history, bucket), number)));
        }
        file.set_len(whole as u64)?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            File::open(parent)?.sync_all()?;
        }
        let end = file.seek(SeekFrom::Start(whole as u64))?;
        Ok(std::sync::Arc::new(Self { state: Mutex::new(State { file, end, taken }) }))
    }
}

/// The number in a line; `Some(None)` for a line of an earlier release, whose numbers were others.
fn read_line(line: &[u8]) -> Option<Option<MessageNumber>> {
    let line: serde_json::Value = serde_json::from_slice(line).ok()?;
    line["source"].as_str()?;
    let member = |name: &str| line[name].as_u64();
    let Some(bucket) = member("bucket") else {
        return member("commit").and(member("ordinal")).map(|_| None);
    };
    let history = u64::from_str_radix(line["history"].as_str()?, 16).ok()?;
    Some(Some(MessageNumber { history, bucket: u16::try_from(bucket).ok()?, number: member("number")? }))
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
    let MessageNumber { history, bucket, number } = message.number;
    let number = format!(r#""history":"{history:016x}","bucket":{bucket},"number":{number}"#);
    let (topic, source) = (text(message.topic), text(message.source));
    format!(r#"{{"topic":{topic},"source":{source},{number},"payload":{payload}}}"#) + "\n"
}

impl Publish for FileBroker {
    fn publish(&self, message: &Message<'_>) -> Result<(), PublishError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let MessageNumber { history, bucket, number } = message.number;
        if state.taken.get(&(history, bucket)).is_some_and(|last| *last >= number) {
            return Ok(());
        }
        let line = write_line(message);
        let end = state.end;
        // The next write overwrites the remains of a failed one.
        let written = state.file.seek(SeekFrom::Start(end)).and_then(|_| state.file.write_all(line.as_bytes()));
        let written = written.and_then(|()| state.file.sync_data());
        written.map_err(|error| PublishError { topic: message.topic.to_owned(), reason: error.to_string() })?;
        state.end += line.len() as u64;
        state.taken.insert((history, bucket), number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'message>(payload: &'message [u8], bucket: u16, number: u64) -> Message<'message> {
        Message::new("t", payload, "s", MessageNumber { history: 1, bucket, number })
    }

    #[test]
    fn a_message_is_in_the_file_once_and_a_torn_line_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("messages");
        let earlier = r#"{"topic":"t","source":"s","commit":9,"ordinal":9,"payload":"of an earlier release"}"#;
        std::fs::write(&path, format!("{earlier}\n")).expect("a file");
        let broker = FileBroker::open(&path).expect("open");
        for number in [1, 2, 2, 1] {
            broker.publish(&message(b"a\nb", 7, number)).expect("publish");
        }
        drop(broker);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("open");
        file.write_all(br#"{"topic":"t","sour"#).expect("a torn line");
        drop(file);
        let broker = FileBroker::open(&path).expect("reopen");
        broker.publish(&message(b"again", 7, 2)).expect("publish");
        broker.publish(&message(b"another", 8, 1)).expect("a group of another space has the same name");
        broker.publish(&message(&[0xff], 7, 3)).expect("publish");
        let text = std::fs::read_to_string(&path).expect("read");
        let numbers = text.lines().filter_map(|line| read_line(line.as_bytes()).expect("a message"));
        let numbers: Vec<_> = numbers.map(|number| (number.bucket, number.number)).collect();
        assert_eq!(numbers, [(7, 1), (7, 2), (8, 1), (7, 3)]);
        assert!(text.starts_with(earlier) && FileBroker::open(directory.path()).is_err(), "{text}");
        assert!(text.ends_with("\"payload\":{\"hex\":\"ff\"}}\n"), "{text}");
    }
}
