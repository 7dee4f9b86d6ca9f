//! Script tests: a script is said to a kernel, and its transcript compared. Only this module touches the API.
//!
//! Statements are separated by `;`, and each is one entry with one command. A thing is a `name`, which is its own group,
//! or `group/name`; a name that contains a slash itself is written `/name`. Statements without an answer leave nothing in
//! the transcript.
//!
//! ```text
//! advance 10s       closed 10s (wall time only)      commit     restart     image      tick      due
//! repeat 9 STATEMENT (with % for the number; the last one's answer)
//! keep all, keep none, keep 2 versions, keep 10s     limit value_bytes_max 3           walk      forget
//! fill TYPE (one step)
//! branch draft      drop draft       on draft        space other      in space other
//! guard PREFIX [open NAME,NAME]     unguard PREFIX
//! in g [fence a #1, owned #1, force] [if GUARD, GUARD]: OP, OP       in no group: OP, OP
//! send [after 10s] in h [fence a #1, owned #1, force] [if GUARD & GUARD] then OP & OP     publish TOPIC PAYLOAD [after 10s]
//! dead     retry letter GROUP NUMBER [owned #1] [force]     drop letter GROUP NUMBER [owned #1] [force]
//! messages          numbers          published        changes since c3                    rows, rows of records, rows of runs, rows of maps
//! ```
//!
//! `cells`, `records`, `runs`, `keyed` and `catalogue` list the words of each contract, `access` those of principals.

mod access;
mod answers;
mod catalogue;
mod cells;
mod coverage;
mod keyed;
mod messages;
mod records;
mod rows;
mod runs;
mod soundness;
mod stage;
mod transaction;
mod words;

pub(crate) use soundness::assert_messages_sound;
pub(crate) use stage::Stage;

/// Says the script to a kernel and compares the transcript. Whatever the test is about, the state must be sound at the
/// end. The same entries must give the same hash and the same bytes in another generation, and in a kernel that keeps
/// nothing in memory from one entry to the next.
#[track_caller]
pub(crate) fn check(script: &str, transcript: &str) {
    let mut stage = Stage::new(1);
    let said = stage.say(script);
    assert!(said == transcript, "{}\n said: {said}\nmeant: {transcript}", stage.protocol());
    stage.assert_sound();
    let (mut twin, mut forgetful) = (Stage::new(2), Stage::new(3));
    for entry in &stage.entries {
        twin.apply(entry.clone());
        forgetful.restart();
        forgetful.apply(entry.clone());
    }
    for other in [twin, forgetful] {
        assert_eq!(other.hash(), stage.hash(), "the same entries give the same hash");
        assert!(other.image() == stage.image(), "the same entries give the same bytes");
    }
}
