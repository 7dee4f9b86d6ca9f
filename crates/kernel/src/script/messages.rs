//! Messages: what is sent, what waits, and what the change feed says.

use contract::guards::OWNER_RECORD;
use kv::{KeyRange, Order, Writer};

use super::Stage;
use super::transaction::{Scope, Separators, transaction};
use super::words::{joined, number, option, show_time, shown_name, time_us};
use crate::changes::{Filter, changes_after};
use crate::command::{Body, Fence, Op};
use crate::keys::messages::read_publish_key;
use crate::names::InGroup;
use crate::outbox::command::{DeadLetterAct, DeadLetterCommand, Send, Target};
use crate::outbox::dead_letters::{DeadLetterPage, ListedDeadLetter, first_place, list};
use crate::outbox::waiting::{list_waiting, waiting};
use crate::outbox::{Stored, numbers};

const SENT: Separators = Separators { head_and_ops: " then", list: '&' };

/// More than any script has.
const MANY: usize = 1_000;

pub(super) fn op<'text>(scope: Scope, words: &[&'text str], text: &'text str) -> Option<Op<'text>> {
    match words {
        ["send", "nonsense"] => Some(Op::Send(Send { target: Target::Transact(b"nonsense"), after_us: None })),
        ["send", rest @ ..] => {
            let after_us = if rest[0] == "after" { Some(time_us(rest[1])) } else { None };
            let inner = transaction(scope, &text[text.find("in ")?..], &SENT);
            let mut body = Writer::new();
            Body::Transact(inner).encode(&mut body);
            // A test ends soon, and the operation borrows its bytes.
            Some(Op::Send(Send { target: Target::Transact(body.finish().leak()), after_us }))
        }
        ["publish", topic, payload, after @ ..] => {
            let target = Target::Topic { topic, payload: payload.as_bytes() };
            Some(Op::Send(Send { target, after_us: option(after, "after").map(time_us) }))
        }
        _ => None,
    }
}

impl Stage {
    /// The messages that wait, those to publish first.
    pub(super) fn messages(&self) -> String {
        let (view, keys) = (self.view(), self.kernel.keys());
        let found = list_waiting(&*view, &keys, self.kernel.catalogue(), MANY, MANY).unwrap();
        let counted = waiting(&*view, &keys).unwrap();
        assert_eq!(counted.total(), found.len() as i64, "R6: {found:?}");
        let mut shown: Vec<String> = self.to_publish().into_iter().map(|(_, shown)| shown).collect();
        for message in &found {
            let Some(due_us) = message.state.due_us() else { continue };
            let target = message.topic.as_deref().unwrap_or("a group");
            shown.push(format!("{} to {target} at {}", message.source, show_time(due_us)));
        }
        joined(shown)
    }

    /// The numbers of the messages that wait, by the groups that sent them, and the last one given in their bucket.
    pub(super) fn message_numbers(&self) -> String {
        let (view, keys) = (self.view(), self.kernel.keys());
        let last_of =
            |bucket| view.get(&keys.message_numbers(bucket)).unwrap().map(|row| numbers::decode(&row).unwrap());
        let found = list_waiting(&*view, &keys, self.kernel.catalogue(), MANY, MANY).unwrap();
        let numbered = |bucket, is_due| {
            let of_bucket = found.iter().filter(move |message| message.bucket == bucket);
            let listed = of_bucket.filter(move |message| message.state.due_us().is_some() == is_due);
            listed.map(|message| message.number.to_string()).collect::<Vec<_>>().join(", ")
        };
        let mut shown = Vec::new();
        for bucket in self.kernel.catalogue().buckets_here() {
            let Some(last) = last_of(bucket) else { continue };
            let lists = [(numbered(bucket, false), " to publish"), (numbered(bucket, true), " due")];
            let lists = lists.into_iter().filter(|(numbers, _)| !numbers.is_empty());
            let lists = lists.map(|(numbers, what)| numbers + what).chain([format!("last {last}")]);
            let source = self.group_in(bucket);
            shown.push(format!("{source}: {}", lists.collect::<Vec<_>>().join(", ")));
        }
        joined(shown)
    }

    /// The group of one letter that a bucket of the first space has.
    fn group_in(&self, bucket: u16) -> char {
        let buckets = self.kernel.catalogue().buckets;
        let of = |letter: &char| buckets.of_group(b"default", letter.to_string().as_bytes()) == bucket;
        "ghijklmnop".chars().find(of).unwrap()
    }

    /// The dead letters, with why they were refused.
    pub(super) fn dead_letters(&self) -> String {
        let (view, keys) = (self.view(), self.kernel.keys());
        let Self { space, branch, .. } = *self;
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            // Pages of one, so that every script tries where the next one starts.
            let page = DeadLetterPage { space, branch, group: None, after, limit: 1, rows_max: MANY };
            let page = list(&*view, &keys, self.kernel.catalogue(), &page).unwrap();
            found.extend(page.letters);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let first = first_place(&*view, &keys, self.kernel.catalogue()).unwrap();
        assert!(found.is_empty() || first.is_some(), "{found:?}");
        let shown = found.iter().map(|letter| {
            let ListedDeadLetter { group, number, source, refusal, names, until_us, .. } = letter;
            let in_group =
                DeadLetterPage { space, branch, group: Some(group), after: None, limit: MANY, rows_max: MANY };
            let of_group = list(&*view, &keys, self.kernel.catalogue(), &in_group).unwrap().letters;
            assert!(of_group.contains(letter), "{of_group:?}");
            let (names, until) = (names.join(" "), show_time(*until_us));
            format!("{group} {number} of {source} on {names} until {until}: {}", refusal.code())
        });
        joined(shown.collect())
    }

    /// Sends a dead letter again, or drops it.
    pub(super) fn dead_letter(&mut self, act: DeadLetterAct, group: &str, given: &str, options: &[&str]) -> String {
        let Self { space, branch, .. } = *self;
        let force = options == ["force"];
        let owned = option(options, "owned").map(|attempt| attempt.trim_start_matches('#'));
        let fences =
            owned.map(|attempt| Fence { record: OWNER_RECORD, attempt: number(attempt) }).into_iter().collect();
        let number = number(given);
        self.propose(&Body::DeadLetter(DeadLetterCommand { space, branch, group, fences, force, number, act }))
    }

    /// Tells the store that a broker has taken everything.
    pub(super) fn published(&mut self) -> String {
        let messages = self.to_publish().into_iter().map(|(number, _)| number).collect();
        self.propose(&Body::Published(messages))
    }

    fn to_publish(&self) -> Vec<((u16, u64), String)> {
        let (view, keys) = (self.view(), self.kernel.keys());
        let mut found = Vec::new();
        for bucket in 0..self.kernel.catalogue().buckets.count() {
            for row in view.scan(&KeyRange::prefix(&keys.publish_prefix(bucket)), Order::Ascending) {
                let (key, row) = row.unwrap();
                let stored = Stored::decode(&row).unwrap();
                let Target::Topic { topic, payload } = stored.send.target else {
                    panic!("only messages for brokers wait to be published");
                };
                let shown = format!("{} to {topic}: {}", stored.source, String::from_utf8_lossy(payload));
                found.push((read_publish_key(&key).unwrap(), shown));
            }
        }
        found
    }

    /// What the feed says after a commit, without the name of the branch.
    pub(super) fn changes_since(&self, commit: &str) -> String {
        let Self { space, branch, .. } = *self;
        let filter = Filter { space, branch, subject: None, group: InGroup::Any, prefix: "" };
        let view = self.view();
        let followed = changes_after(&*view, &self.kernel.keys(), number(commit), &filter, MANY).unwrap();
        let contract::Followed::Page(page) = followed else {
            panic!("nothing is removed from the feed here: {followed:?}");
        };
        let shown = page.changes.iter().map(|change| {
            let name = shown_name(change.group.as_deref(), &change.name);
            format!("{:?} {name} {:?} v{}", change.subject, change.reason, change.version).to_lowercase()
        });
        joined(shown.collect())
    }
}
