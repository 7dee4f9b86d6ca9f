//! The library passes the suite of the contract of sessions, over restarts and over images.

use std::path::PathBuf;
use std::time::Duration;

use contract::{Error, Rejection};
use statehouse::sessions::{
    Command, DecodeError, KvError, NewSession, PortableSessions, PushedRequest, Pushes, Reader, SessionCredentials,
    SessionStore, UserCall, UserMachine, UserState, Writer,
};
use statehouse::{Options, Statehouse};
use testkit::session_store::Tally;

/// The machine that the suite needs.
struct Machine;

struct Bytes(Tally);

impl Command for Bytes {
    type Response = String;

    fn encode(&self, writer: &mut Writer) {
        writer.raw(&self.0.encode());
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Tally::decode(bytes).map(Bytes).ok_or(DecodeError { what: "no command of the suite" })
    }

    fn encode_response(response: &String, writer: &mut Writer) {
        writer.raw(response.as_bytes());
    }

    fn decode_response(bytes: &[u8]) -> Result<String, DecodeError> {
        String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError { what: "text" })
    }
}

impl UserMachine for Machine {
    const NUMBER: u16 = 256;
    const VERSION: u16 = 1;
    type Command = Bytes;

    fn apply(
        &self,
        state: &mut UserState<'_>,
        call: &UserCall,
        Bytes(command): Bytes,
        pushes: &mut Pushes,
    ) -> Result<String, KvError> {
        Ok(match command {
            Tally::Add(key) => {
                let before = state.get(key.as_bytes())?.map_or(0, |value| u64::from(value[0]));
                state.put(key.as_bytes(), &[u8::try_from(before + 1).expect("the suite counts to few")]);
                (before + 1).to_string()
            }
            Tally::Push(session, text) => {
                pushes.push(session, text);
                "sent".to_owned()
            }
            Tally::Watch => {
                state.put(b"watcher", &call.session.expect("in a session").to_be_bytes());
                "watching".to_owned()
            }
        })
    }

    fn on_session_created(
        &self,
        _: &mut UserState<'_>,
        call: &UserCall,
        session: &NewSession<'_>,
        _: &mut Pushes,
    ) -> Result<(), KvError> {
        assert_eq!(call.session, Some(session.number));
        assert_eq!(session.capabilities, [("client".to_owned(), b"suite".to_vec())]);
        Ok(())
    }

    fn on_session_expired(
        &self,
        state: &mut UserState<'_>,
        _: &UserCall,
        session: u64,
        pushes: &mut Pushes,
    ) -> Result<(), KvError> {
        if let Some(watcher) = state.get(b"watcher")? {
            let watcher = u64::from_be_bytes(*watcher.first_chunk().expect("eight bytes"));
            for target in [session, watcher] {
                pushes.push(target, format!("gone {session}"));
            }
        }
        Ok(())
    }
}

/// A store with the directory that holds it.
struct Kept {
    sessions: PortableSessions<Machine>,
    house: Statehouse,
    path: PathBuf,
    directory: tempfile::TempDir,
}

impl Kept {
    fn open(directory: tempfile::TempDir, path: PathBuf) -> Self {
        let house = Options::default().machine(Machine).open(&path).expect("a house");
        Self { sessions: house.machine::<Machine>().group("g").portable(), house, path, directory }
    }
}

macro_rules! delegate {
    ($($name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        impl SessionStore for Kept {
            $(fn $name(&self, $($argument: $type),*) -> $output {
                self.sessions.$name($($argument),*)
            })*
        }
    };
}

delegate! {
    create(timeout: Duration, capabilities: &[(String, Vec<u8>)]) -> Result<SessionCredentials, Error>;
    request(session: &SessionCredentials, request: u64, lowest_pending: u64, command: &[u8]) -> Result<Vec<u8>, Error>;
    acknowledge(session: &SessionCredentials, upto: u64) -> Result<u64, Error>;
    expire(session: &SessionCredentials) -> Result<bool, Error>;
    requests_for_retry(sent_before: u64, limit: u32) -> Result<Vec<PushedRequest>, Error>;
    has_pending() -> Result<bool, Error>;
    has_overdue(sent_before: u64) -> Result<bool, Error>;
}

fn make() -> Kept {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("house");
    Kept::open(directory, path)
}

#[test]
fn a_machine_passes_over_a_restart() {
    testkit::session_store::suite(make, |kept| {
        let Kept { sessions, house, path, directory } = kept;
        house.close().expect("closed");
        drop((sessions, house));
        Kept::open(directory, path)
    });
}

#[test]
fn a_machine_passes_over_an_image() {
    testkit::session_store::suite(make, |kept| {
        let mut image = Vec::new();
        kept.house.write_image(&mut image).expect("an image");
        let path = kept.directory.path().join("restored");
        Statehouse::restore_image(&path, &mut image.as_slice()).expect("restored");
        let Kept { sessions, house, directory, .. } = kept;
        drop((sessions, house));
        Kept::open(directory, path)
    });
}

/// The same machine in a newer version.
struct Newer;

impl UserMachine for Newer {
    const NUMBER: u16 = Machine::NUMBER;
    const VERSION: u16 = 2;
    type Command = Bytes;

    fn apply(
        &self,
        state: &mut UserState<'_>,
        call: &UserCall,
        command: Bytes,
        pushes: &mut Pushes,
    ) -> Result<String, KvError> {
        let answer = Machine.apply(state, call, command, pushes)?;
        Ok(if call.version == 1 { answer } else { format!("{answer} by version {}", call.version) })
    }
}

#[test]
fn a_directory_opens_only_with_its_machines() {
    let Kept { sessions, house, path, directory } = make();
    let add = Bytes(Tally::Add("n".to_owned()));
    assert_eq!(house.machine::<Machine>().group("g").send(&add).as_deref(), Ok("1"), "without a session");
    drop((sessions, house));
    let missing = Options::default().open(&path).map(drop).expect_err("the machine is missing");
    assert!(missing.to_string().contains("machine 256 is registered here in version 1"), "{missing}");
    assert_eq!(missing.code(), "SH-2005");
    let newer = Options::default().machine(Newer).open(&path).expect("a newer one knows the older's commands");
    assert_eq!(newer.machine::<Newer>().group("g").send(&add).as_deref(), Ok("2 by version 2"));
    drop(newer);
    assert!(Options::default().machine(Machine).open(&path).is_err(), "an older one does not");
    drop(directory);
}

#[test]
fn what_a_machine_cannot_read_or_write_is_refused_and_changes_nothing() {
    let kept = make();
    let session = kept.create(Duration::from_secs(60), &[("client".to_owned(), b"suite".to_vec())]).expect("a session");
    let unreadable = kept.request(&session, 1, 1, b"\xff").expect_err("unreadable");
    assert_eq!(unreadable.code(), "SH-5005");
    assert_eq!(kept.request(&session, 1, 1, b"\xff").expect_err("as before"), unreadable);
    let long = Tally::Add("k".repeat(1_025));
    let refused = kept.request(&session, 2, 1, &long.encode()).expect_err("too long");
    assert!(refused.to_string().contains("user_key_bytes_max"), "{refused}");
    assert_eq!(kept.request(&session, 3, 1, b"add n").as_deref(), Ok(b"1".as_slice()));
    let rows = kept.house.machine::<Machine>().group("g").view().expect("a view").scan(b"").count();
    assert_eq!(rows, 1);
    let others = kept.house.machine::<Machine>().group("other").view().expect("a view").scan(b"").count();
    assert_eq!(others, 0, "each group has its own state");
}

/// Writes a key and a value of these lengths.
struct Sizes;

struct Write {
    key: u32,
    value: u32,
}

impl Command for Write {
    type Response = ();

    fn encode(&self, writer: &mut Writer) {
        writer.u32(self.key).u32(self.value);
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        Ok(Self { key: reader.u32()?, value: reader.u32()? })
    }

    fn encode_response((): &(), _: &mut Writer) {}

    fn decode_response(_: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

impl UserMachine for Sizes {
    const NUMBER: u16 = 300;
    const VERSION: u16 = 1;
    type Command = Write;

    fn apply(&self, state: &mut UserState<'_>, _: &UserCall, command: Write, _: &mut Pushes) -> Result<(), KvError> {
        state.put(b"before", b"");
        state.put(&vec![b'k'; command.key as usize], &vec![0; command.value as usize]);
        Ok(())
    }
}

#[test]
fn a_machine_writes_keys_and_values_up_to_their_limits_and_no_longer_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let house = Options::default().machine(Sizes).open(directory.path().join("house")).expect("a house");
    for (group, key, value, limit) in [
        ("a", 1_024, 1 << 20, None),
        ("b", 1_025, 1, Some(("user_key_bytes_max", 1_024, 1_025))),
        ("c", 1, (1 << 20) + 1, Some(("user_value_bytes_max", 1 << 20, (1 << 20) + 1))),
    ] {
        let machine = house.machine::<Sizes>().group(group);
        let expected = match limit {
            None => Ok(()),
            Some((limit, max, got)) => Err(Error::Rejected(Rejection::LimitExceeded { limit, max, got })),
        };
        assert_eq!(machine.send(&Write { key, value }), expected);
        let rows = machine.view().expect("a view").scan(b"").count();
        assert_eq!(rows, if limit.is_none() { 2 } else { 0 }, "all of the command, or nothing");
    }
}
