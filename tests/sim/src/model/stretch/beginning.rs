//! The beginning of a stretch: spaces, branches, types, limits that are small enough to be met, and records in many queues.

use contract::{Limits, Retention};
use kernel::catalogue::TypeDeclaration;
use kernel::{Body, CatalogueChange, Op, RecordAct, Transact, TtlArgument};
use session::UserMachine;

use super::Stretch;
use crate::model::drawn::Drawn;
use crate::model::habits::About;
use crate::model::keyed::names::guards;
use crate::model::places::SPACES;
use crate::model::records::names::types;
use crate::model::sessions::machine::Counters;

/// Records that an entry puts into the queues of the crowd.
const FILLED_PER_ENTRY: usize = 500;

impl Stretch<'_> {
    pub(super) fn declare(&mut self) -> Result<(), String> {
        if self.habits.about == About::Cells {
            // Its commands do that themselves.
            return Ok(());
        }
        let limits = self.limits();
        let mut changes = vec![
            CatalogueChange::CreateSpace { name: SPACES[1].1.to_owned() },
            CatalogueChange::CreateBranch { space: 1, name: "draft".to_owned() },
            CatalogueChange::SetLimits(limits),
        ];
        if matches!(self.habits.about, About::Sessions | About::Everything) {
            let (machine, version) = (Counters::NUMBER, Counters::VERSION);
            changes.push(CatalogueChange::RegisterMachine { machine, version });
        }
        if matches!(self.habits.about, About::Keyed | About::Everything) {
            changes.extend(guards().into_iter().map(|(space, prefix, guard)| CatalogueChange::SetGuard {
                space,
                prefix: prefix.to_owned(),
                guard: Some(guard),
            }));
        }
        for (space, _) in SPACES {
            // The inboxes keep every message that arrived.
            changes.push(CatalogueChange::SetRetention { space, retention: Retention::ALL });
            for (prefix, mut record_type) in types() {
                // Some indexes come later.
                let random = &mut self.random;
                record_type.indexes.retain(|_| !random.one_in(4));
                let (prefix, record_type) = (prefix.to_owned(), Box::new(record_type));
                changes.push(CatalogueChange::DeclareType(TypeDeclaration { space, prefix, record_type }));
            }
        }
        // Often a minute ends while the stretch lasts, and entries of `updated_at` move.
        let began_us = self.random.pick(&[1_000_000, 59_000_000, 59_900_000]);
        self.reference.begin_entry(began_us, 1_000);
        let drawn = changes.into_iter().map(|change| Drawn::plain(&Body::Catalogue(change)));
        self.apply(drawn.collect())?;
        // What the catalogue has become decides.
        self.reference.limits = self.instance.kernel.catalogue().limits;
        Ok(())
    }

    /// Somebody sets limits anew.
    pub(super) fn set_limits(&mut self) -> Result<(), String> {
        let limits = self.limits();
        self.pass_time();
        self.apply(vec![Drawn::plain(&Body::Catalogue(CatalogueChange::SetLimits(limits)))])
    }

    fn limits(&mut self) -> Limits {
        let mut limits = Limits::default();
        limits.tick_steps_max = self.random.pick(&[1, 3, 20, 256]);
        // The books follow the feed entry by entry.
        limits.changes_age_us_max = u64::MAX;
        if self.habits.about == About::Sessions {
            let clients = self.clients.count();
            limits.sessions_max = u32::try_from(clients + clients / 4).expect("few");
            limits.session_answers_max = self.random.pick(&[1, 4, 10, 256, 256]);
            limits.session_answer_bytes_max = self.random.pick(&[200, 20_000, 100_000, 1 << 20]);
            limits.session_pushes_max = self.random.pick(&[5, 30, 1_024]);
            limits.session_push_bytes_max = self.random.pick(&[2_000, 20_000, 4 << 20]);
        } else if self.habits.about != About::Runs {
            limits.tombstone_age_us = self.random.pick(&[0, 3_000, 40_000]);
            limits.claim_records_max = self.random.pick(&[2, 256]);
            limits.record_fields_max = self.random.pick(&[4, 256]);
            limits.sessions_max = self.random.pick(&[6, 100]);
            limits.messages_waiting_max = self.random.pick(&[3, 20, 10_000_000, 10_000_000]);
            limits.session_answers_max = self.random.pick(&[2, 6, 30, 256, 256]);
            limits.session_pushes_max = self.random.pick(&[3, 30]);
            // Which answer would be one too many by its bytes, only the sessions' own model says.
            limits.session_answer_bytes_max = 1 << 30;
        }
        limits
    }

    /// Puts a record into each queue of the crowd.
    pub(super) fn fill(&mut self) -> Result<(), String> {
        for names in self.habits.focus.crowd.chunks(FILLED_PER_ENTRY) {
            self.pass_time();
            let mut drawn = Vec::new();
            for name in names {
                let (space, branch, _) = self.habits.focus.place(&mut self.random, &self.reference);
                let act = RecordAct::Put { record_type: None, ttl: TtlArgument::Persist, fields: Vec::new() };
                let transact = Transact::new(space, branch, None, vec![Op::Record(name, act)]);
                drawn.push(Drawn::plain(&Body::Transact(transact)));
            }
            self.apply(drawn)?;
        }
        Ok(())
    }
}
