//! R6: a message that is refused is kept, sent again once, or dropped.

use super::shard::{halves, in_group, letter};
use super::{groups, send, set};
use crate::LEVEL_OF_DEAD_LETTERS;
use crate::catalogue::Catalogue;
use crate::command::{Body, CellAct, CellGuard, Guard, MACHINE, Op, Transact};
use crate::keys::Keys;
use crate::machine::Contracts;
use crate::outbox::Stored;
use crate::outbox::command::{Deliver, Send, Target};
use crate::outbox::deliver::attempt;
use crate::records::command::{RecordAct, TtlArgument};
use crate::script::check;
use crate::sessions::brought::Hosted;
use crate::transact::try_transact;
use crate::value::ValueRef;
use crate::{BucketRange, Buckets, Kernel};
use contract::limits::{DEAD_LETTERS_MAX, DEAD_LETTERS_OF_SPACE_MAX};
use contract::{Reason, Rejection};
use kv::{MemoryStore, Staging, Store};
use session::{Call, Pushes, Stamp};

#[test]
fn a_refused_message_is_kept_with_its_reason_until_it_is_sent_again() {
    check(
        "in g: send in h if record x exists then put y & set c 1; tick; dead; messages; retry letter h 1; dead; put h/x; \
         retry letter g 1; commit; retry letter h 1; get h/c; dead; changes since c5; retry letter h 1",
        "sent; h 1 of g on y c until 604800s: SH-1017; none; \
         record \"x\" is not as expected: it does not exist [SH-1017]; h 1 of g on y c until 604800s: SH-1017; x v1; \
         group \"g\" has no dead letter 1 [SH-1023]; c5; retry: 2; 1 v1; none; record h/y written v1, \
         cell h/c written v1, message g delivered v1; group \"h\" has no dead letter 1 [SH-1023]",
    );
}

#[test]
fn a_letter_is_dropped_by_a_command_or_when_its_time_is_over() {
    check(
        "in g: send in h if record x exists then put y, send in h if record x exists then put z; tick; dead; drop letter h 1; dead; \
         changes since c1; due; advance 604799s; tick; dead; advance 1s; tick; dead; due; changes since c4; drop letter h 2",
        "sent, sent; h 1 of g on y until 604800s: SH-1017, h 2 of g on z until 604800s: SH-1017; drop: 0; \
         h 2 of g on z until 604800s: SH-1017; message g refused v1, message g refused v2, message g dropped v1; \
         wall 604800s, cluster never; h 2 of g on z until 604800s: SH-1017; none; wall never, cluster never; \
         message g dropped v2; group \"h\" has no dead letter 2 [SH-1023]",
    );
}

#[test]
fn the_letters_of_a_guarded_group_are_its_owners() {
    let unfenced = |holds: &str| {
        format!(
            "group \"h\" is guarded: a write must carry the fence of the attempt that holds it, {holds}; \
             claim it first, or force the write [SH-4003]"
        )
    };
    let nobody = unfenced("and nobody holds it");
    let somebody = unfenced("which is held by \"w\" until 1970-01-01T00:00:30Z");
    let over = "attempt 9 of the group is over: it is owned at attempt 1, held by \"w\" [SH-4002]";
    check(
        "guard h open in; in g: send in h then set c 1, send in h then set c 2, send in h if record x exists then set in 1; tick; \
         dead; retry letter h 1; drop letter h 1; in h: own by w; retry letter h 1; retry letter h 1 owned #1; get h/c; \
         drop letter h 2 owned #9; retry letter h 2 owned #9; drop letter h 3; retry letter h 3 owned #1; \
         drop letter h 3 force; retry letter h 2 force; get h/c; dead",
        &format!(
            "sent, sent, sent; h 1 of g on c until 604800s: SH-4003, h 2 of g on c until 604800s: SH-4003, \
             h 3 of g on in until 604800s: SH-1017; {nobody}; {nobody}; h/_statehouse.owner #1; {somebody}; retry: 1; 1 v1; \
             {over}; {over}; {somebody}; record \"x\" is not as expected: it does not exist [SH-1017]; drop: 0; retry: 1; 2 v2; \
             none"
        ),
    );
}

#[test]
fn letters_of_a_deleted_branch_are_nobodys() {
    check(
        "branch draft; on draft; in g: send in h if record x exists then put y; tick; dead; \
         in g: send after 5s in h if record x exists then put y; drop draft; advance 5s; tick; dead; drop letter h 1; on main; dead; \
         advance 604800s; tick; due",
        "#2; sent; h 1 of g on y until 604800s: SH-1017; sent; none; there is no branch \"#2\" in this space [SH-1006]; none; \
         wall never, cluster never",
    );
}

#[test]
fn an_image_and_a_restart_keep_letters() {
    check(
        "in g: send in h if record x exists then put y; tick; image; restart; dead; drop letter h 1; image; dead",
        "sent; same bytes; h 1 of g on y until 604800s: SH-1017; drop: 0; same bytes; none",
    );
}

#[test]
fn what_a_letter_sends_when_it_is_sent_again_was_accepted_with_it() {
    check(
        "in g: send in h if record x exists then send in i then set c 1; tick; limit messages_waiting_max 0; put h/x; \
         retry letter h 1; tick; get i/c",
        "sent; x v1; retry: 1; 1 v1",
    );
}

#[test]
fn letters_of_a_deleted_branch_go_with_it_in_steps_and_others_stay() {
    check(
        "branch draft; on draft; repeat 70 in g: send in h if record x exists then put y; tick; on main; \
         in g: send in h if record x exists then put z; tick; drop draft; walk; dead; drop letter h 71; due",
        "#2; sent; sent; 2 rounds; h 71 of g on z until 604800s: SH-1017; drop: 0; wall never, cluster never",
    );
}

/// The rows of letters would take long to write; their number is a row.
#[test]
fn as_many_letters_are_kept_as_the_limits_say_and_one_more_is_lost() {
    let (of_shard, of_space) = (i64::from(DEAD_LETTERS_MAX), i64::from(DEAD_LETTERS_OF_SPACE_MAX));
    for (dead, in_space) in [(of_shard - 1, 0), (of_space, of_space - 1)] {
        refuses_one_more(dead, in_space);
    }
}

/// One more than this is kept, and then none.
fn refuses_one_more(dead: i64, in_space: i64) {
    let mut shards = halves();
    let [here, there] = groups(&shards);
    let refused = Transact {
        guards: vec![Guard::Cell(CellGuard::Exists("never"))],
        ..Transact::new(1, 1, Some(&there), vec![set("got", 1)])
    };
    let body = letter(&Body::Transact(refused));
    let message =
        Stored { space: 1, branch: 1, source: &here, send: Send { target: Target::Transact(&body), after_us: None } };
    let source_bucket = shards[0].bucket(&here);
    shards[1].count_dead_letters(dead, in_space);
    for (number, refused, lost) in [(1, 1, 0), (2, 1, 1)] {
        shards[1].done(number, &letter(&Body::Deliver(Deliver { source_bucket, number, message })));
        assert_eq!((shards[1].changes(Reason::Refused), shards[1].changes(Reason::Lost)), (refused, lost));
        assert_eq!(shards[1].changes(Reason::Dropped), 0);
        assert_eq!(shards[1].counts().dead, dead + 1);
    }
    shards[1].done(3, &in_group(&there, vec![set("got", 1)]));
}

/// The entries of an earlier release give what they gave there.
#[test]
fn before_there_were_dead_letters_a_refused_message_is_refused_and_a_lost_one_is_not_mentioned() {
    let mut shards = halves();
    let [here, _] = groups(&shards);
    let shard = &mut shards[0];
    shard.go_back_to_level(LEVEL_OF_DEAD_LETTERS - 1);
    let refused = Transact {
        guards: vec![Guard::Cell(CellGuard::Exists("never"))],
        ..Transact::new(1, 1, Some(&here), vec![set("got", 1)])
    };
    let refused = letter(&Body::Transact(refused));
    shard.done(1, &in_group(&here, vec![send(&refused)]));
    shard.done(2, &letter(&Body::Tick));
    assert_eq!(shard.counts(), crate::MessageCounts::default(), "none is kept");
    let inner = in_group(&here, vec![set("a", 1)]);
    shard.done(3, &in_group(&here, vec![send(&inner)]));
    shard.damage(&shard.cell_key(&here, "a"));
    shard.done(4, &letter(&Body::Tick));
    assert_eq!(shard.counts(), crate::MessageCounts::default(), "none is kept");
    let gone = shard.changes(Reason::Dropped) + shard.changes(Reason::Lost);
    assert_eq!((shard.changes(Reason::Refused), gone), (1, 0));
}

#[test]
fn a_page_of_letters_ends_with_the_one_that_reaches_its_bytes() {
    let mut shards = halves();
    let [here, _] = groups(&shards);
    let shard = &mut shards[0];
    let value = "x".repeat(900 << 10);
    let large = Transact {
        guards: vec![Guard::Cell(CellGuard::Exists("never"))],
        ..Transact::new(1, 1, Some(&here), vec![Op::Cell("c", CellAct::Set(ValueRef::Text(&value)))])
    };
    let large = letter(&Body::Transact(large));
    for at_us in 1..=6 {
        shard.done(2 * at_us, &in_group(&here, vec![send(&large)]));
        shard.done(2 * at_us + 1, &letter(&Body::Tick));
    }
    assert_eq!(shard.counts().dead, 6);
    assert_eq!(shard.letter_pages(Some(&here)), [5, 1], "of {} bytes", value.len());
    assert_eq!(shard.letter_pages(None), [5, 1]);
}

/// Whoever sends a letter again is not who sent it: what ends with a session does not end with theirs.
#[test]
fn a_message_is_delivered_in_no_session() {
    let (store, keys) = (MemoryStore::new(), Keys::new(1, BucketRange::ALL));
    store.commit(Kernel::genesis(store.view().unwrap(), keys, Buckets::default())).unwrap();
    let catalogue = Catalogue::load(&*store.view().unwrap(), &keys).unwrap();
    let mut contracts = Contracts::new(catalogue, keys, Hosted::new());
    let (mut state, mut pushes) = (Staging::new(store.view().unwrap()), Pushes::default());
    let (stamp, revision) = (Stamp { wall_us: 1, cluster_us: 1 }, contracts.catalogue.revision);
    let call = Call {
        machine: MACHINE,
        session: Some(7),
        sender: None,
        catalogue_revision: revision,
        body: b"",
        stamp,
        commit: 1,
    };
    let put = RecordAct::Put { record_type: None, ttl: TtlArgument::WithSession, fields: Vec::new() };
    let transact = Transact::new(1, 1, Some("h"), vec![Op::Record("r", put)]);
    let body = letter(&Body::Transact(transact.clone()));
    let message =
        Stored { space: 1, branch: 1, source: "g", send: Send { target: Target::Transact(&body), after_us: None } };
    let mut applying = contracts.applying(&mut state, &call, &mut pushes);
    applying.savepoint();
    let refused = attempt(&mut applying, &message, &transact).unwrap().map(|_| ());
    assert!(matches!(refused, Err(Rejection::InvalidDeclaration { .. })), "{refused:?}");
    assert_eq!(applying.session(), Some(7));
    assert!(try_transact(&mut applying, &transact, 0).unwrap().is_ok(), "a transaction of the session itself");
}
