//! Your own machine: seats of a show, reserved exactly once, and pushed to waiting clients when one becomes free.
//!
//! Run with `cargo run --example own_machine -p statehouse`.

use std::time::Duration;

use statehouse::sessions::{
    Command, DecodeError, Delivery, KvError, Pushes, Reader, UserCall, UserMachine, UserState, Writer,
};
use statehouse::{Error, Options};

/// The commands of clients, each with its response type.
enum Ask {
    Reserve {
        seat: u32,
    },
    /// Gets the seat, now or as a push when it becomes free.
    WaitFor {
        seat: u32,
    },
}

#[derive(Debug, PartialEq)]
enum Told {
    Yours,
    Taken,
    Waiting,
}

impl Command for Ask {
    type Response = Told;

    fn encode(&self, writer: &mut Writer) {
        match self {
            Ask::Reserve { seat } => writer.u8(1).u32(*seat),
            Ask::WaitFor { seat } => writer.u8(2).u32(*seat),
        };
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        match (reader.u8()?, reader.u32()?) {
            (1, seat) => Ok(Ask::Reserve { seat }),
            (2, seat) => Ok(Ask::WaitFor { seat }),
            _ => Err(DecodeError { what: "an unknown question" }),
        }
    }

    fn encode_response(told: &Told, writer: &mut Writer) {
        writer.u8(match told {
            Told::Yours => 1,
            Told::Taken => 2,
            Told::Waiting => 3,
        });
    }

    fn decode_response(bytes: &[u8]) -> Result<Told, DecodeError> {
        match Reader::new(bytes).u8()? {
            1 => Ok(Told::Yours),
            2 => Ok(Told::Taken),
            3 => Ok(Told::Waiting),
            _ => Err(DecodeError { what: "an unknown answer" }),
        }
    }
}

/// Each group of its state is one show. Keys: `s` and the seat: its owner; `w`, the seat, the session: a waiting
/// client.
struct Seats;

fn key(kind: u8, seat: u32) -> Vec<u8> {
    [&[kind][..], &seat.to_be_bytes()].concat()
}

fn session_of(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*bytes.last_chunk().expect("eight bytes at the end"))
}

impl UserMachine for Seats {
    const NUMBER: u16 = 300;
    const VERSION: u16 = 1;
    type Command = Ask;

    fn apply(&self, state: &mut UserState, call: &UserCall, ask: Ask, _: &mut Pushes) -> Result<Told, KvError> {
        let session = call.session.unwrap_or(0).to_be_bytes();
        let (Ask::Reserve { seat } | Ask::WaitFor { seat }) = ask;
        Ok(match (state.get(&key(b's', seat))?, ask) {
            (None, _) => {
                state.put(&key(b's', seat), &session);
                Told::Yours
            }
            (Some(owner), _) if *owner == session => Told::Yours,
            (Some(_), Ask::Reserve { .. }) => Told::Taken,
            (Some(_), Ask::WaitFor { .. }) => {
                state.put(&[key(b'w', seat), session.to_vec()].concat(), b"");
                Told::Waiting
            }
        })
    }

    /// The seats of a client that is gone go to those who wait for them.
    fn on_session_expired(
        &self,
        state: &mut UserState,
        _: &UserCall,
        session: u64,
        pushes: &mut Pushes,
    ) -> Result<(), KvError> {
        // A hall has few seats, and few who wait for them: all in memory. `state.page` is for larger things.
        let waiting = state.scan(b"w").map(|row| row.map(|(key, _)| key)).collect::<Result<Vec<_>, _>>()?;
        let taken = state.scan(b"s").collect::<Result<Vec<_>, _>>()?;
        for own in waiting.iter().filter(|key| session_of(key) == session) {
            state.delete(own);
        }
        for (seat, owner) in taken {
            if session_of(&owner) != session {
                continue;
            }
            let next = waiting.iter().find(|key| key[1..5] == seat[1..5] && session_of(key) != session);
            match next {
                None => state.delete(&seat),
                Some(next) => {
                    state.put(&seat, &session_of(next).to_be_bytes());
                    state.delete(next);
                    pushes.push(session_of(next), [b"seat ", &seat[1..5]].concat());
                }
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("statehouse-example-own-machine-{}", std::process::id()));
    let house = Options::default().machine(Seats).open(&path)?;
    let (ann, bob) = (house.sessions().open()?, house.sessions().open()?);
    let show = |session: &statehouse::Session| session.machine::<Seats>().group("hamlet-friday");

    // A request that is repeated because its answer was lost is answered again and not executed.
    let first = ann.request(1, 1).machine::<Seats>().group("hamlet-friday");
    assert_eq!(first.send(&Ask::Reserve { seat: 7 })?, Told::Yours);
    assert_eq!(first.send(&Ask::Reserve { seat: 7 })?, Told::Yours);
    // Otherwise requests are numbered as they are sent.
    assert_eq!(show(&bob).send(&Ask::Reserve { seat: 7 })?, Told::Taken);
    assert_eq!(show(&bob).send(&Ask::WaitFor { seat: 7 })?, Told::Waiting);

    // Ann leaves; her seat is Bob's in the same commit, and he is told, even if he was not connected just then.
    let mut deliveries = bob.deliveries();
    ann.close()?;
    let Some(Delivery::Push { number, payload }) = deliveries.next(Duration::from_secs(10))? else {
        panic!("nobody told Bob");
    };
    assert_eq!(payload, [b"seat ", &7_u32.to_be_bytes()[..]].concat());
    deliveries.acknowledge(number)?;

    // Anyone can look, at a view of the committed state.
    let seats = house.machine::<Seats>().group("hamlet-friday").view()?;
    let owner = seats.get(&key(b's', 7)).expect("readable").expect("somebody has it");
    println!("seat 7 is session {}'s, who is Bob: {}", session_of(&owner), session_of(&owner) == bob.id());
    assert_eq!(session_of(&owner), bob.id());

    drop((seats, deliveries, first, bob));
    house.close()?;
    drop(house);
    let refused = Options::default().open(&path).err().expect("without its machine the directory does not open");
    assert!(refused.to_string().contains("machine"), "{refused}");
    std::fs::remove_dir_all(&path).expect("the example's directory is removed");
    Ok(())
}
