//! A store that stands still while a test says so: a machine whose command does not return keeps everything behind it waiting.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use statehouse::sessions::{Command, DecodeError, KvError, Pushes, UserCall, UserMachine, UserState, Writer};
use statehouse::{Options, Statehouse};

/// Options of a store that can be held, and what holds it.
pub fn holdable(options: Options) -> (Options, Holder) {
    let ((enter, entered), (release, released)) = (channel(), channel());
    let machine = Holding { enter, released: Mutex::new(released) };
    (options.machine(machine), Holder { entered, release })
}

/// Holds a store.
pub struct Holder {
    entered: Receiver<()>,
    release: Sender<()>,
}

impl Holder {
    /// Returns when nothing is applied any more, until the value is dropped.
    pub fn hold(&self, house: &Statehouse) -> Held<'_> {
        drop(house.machine::<Holding>().group("hold").send_later(&Hold));
        self.entered.recv().expect("the command is applied");
        Held { release: &self.release }
    }
}

/// A store that stands still; it goes on when this is dropped.
pub struct Held<'holder> {
    release: &'holder Sender<()>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.release.send(()).expect("the machine waits for it");
    }
}

struct Holding {
    enter: Sender<()>,
    released: Mutex<Receiver<()>>,
}

struct Hold;

impl Command for Hold {
    type Response = ();

    fn encode(&self, _: &mut Writer) {}

    fn decode(_: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self)
    }

    fn encode_response((): &(), _: &mut Writer) {}

    fn decode_response(_: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

impl UserMachine for Holding {
    const NUMBER: u16 = 301;
    const VERSION: u16 = 1;
    type Command = Hold;

    fn apply(&self, _: &mut UserState, _: &UserCall, _: Hold, _: &mut Pushes) -> Result<(), KvError> {
        // The test may have ended meanwhile, and then nobody is held.
        let _ = self.enter.send(());
        let _ = self.released.lock().expect("no panic").recv();
        Ok(())
    }
}
