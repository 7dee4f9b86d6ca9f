//! Declarations, as far as the model test makes them.

use contract::Rejection;
use kernel::{CatalogueChange, OpOutcome};

use super::{Declared, Outcome, Reference};

impl Reference {
    pub(super) fn change(&mut self, change: &CatalogueChange) -> Result<Vec<Outcome>, Rejection> {
        self.revision += 1;
        Ok(match change {
            // The numbers that the names of the test stand for.
            CatalogueChange::CreateSpace { .. } => vec![Outcome::Is(OpOutcome::Assigned(2))],
            CatalogueChange::CreateBranch { .. } => vec![Outcome::Is(OpOutcome::Assigned(3))],
            CatalogueChange::DeclareType { space, prefix, record_type } => {
                let types = self.types.get_mut(space).expect("a known space");
                let known = types.iter().position(|declared| declared.definition.name == record_type.name);
                let number = known.unwrap_or(types.len());
                if known.is_none() {
                    types.push(Declared { definition: (**record_type).clone(), prefixes: Vec::new() });
                }
                types.iter_mut().for_each(|declared| declared.prefixes.retain(|other| other != prefix));
                types[number].definition = (**record_type).clone();
                types[number].prefixes.push(prefix.clone());
                // Numbers of types begin with 1.
                vec![Outcome::Is(OpOutcome::Assigned(u32::try_from(number).expect("few types") + 1))]
            }
            _ => Vec::new(),
        })
    }

    /// A type by name.
    pub(crate) fn type_named(&self, space: u32, name: &str) -> Option<&Declared> {
        self.types[&space].iter().find(|declared| declared.definition.name == name)
    }

    /// The type for the longest prefix of a record's name.
    pub(super) fn type_of_name(&self, space: u32, name: &str) -> Option<Declared> {
        let mut longest: Option<(usize, &Declared)> = None;
        for declared in &self.types[&space] {
            for prefix in declared.prefixes.iter().filter(|prefix| name.starts_with(prefix.as_str())) {
                if longest.is_none_or(|(length, _)| prefix.len() > length) {
                    longest = Some((prefix.len(), declared));
                }
            }
        }
        longest.map(|(_, declared)| declared.clone())
    }
}
